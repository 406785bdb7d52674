# heddle_install_package(<package> TARGET <library> EXPORT_NAME <name> DESCRIPTION <text> HEADERS <file>...): the component
# <package>, what an application needs to build against that library and to run with it: find_package(<package>) gives
# heddle::<name>, pkg-config <package> the same. The tree may be moved after it is installed: neither package file names a folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The prefix as seen from the folder of .pc files.
file(RELATIVE_PATH HEDDLE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
set(HEDDLE_PACKAGE_TEMPLATES ${CMAKE_CURRENT_LIST_DIR})

function(heddle_install_package package)
  cmake_parse_arguments(arg "" "TARGET;EXPORT_NAME;DESCRIPTION" "HEADERS" ${ARGN})
  set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/${package})
  set_target_properties(${arg_TARGET} PROPERTIES EXPORT_NAME ${arg_EXPORT_NAME})
  install(TARGETS ${arg_TARGET} EXPORT ${package} COMPONENT ${package}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${package}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${arg_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heddle COMPONENT ${package})
  install(EXPORT ${package} NAMESPACE heddle:: FILE ${package}-targets.cmake DESTINATION ${folder} COMPONENT ${package})

  # find_package(<package> <major>.<minor>): minor versions may differ in the interface until there is a 1.0.
  configure_package_config_file(${HEDDLE_PACKAGE_TEMPLATES}/package-config.cmake.in ${CMAKE_BINARY_DIR}/${package}-config.cmake
    INSTALL_DESTINATION ${folder})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/${package}-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/${package}-config.cmake ${CMAKE_BINARY_DIR}/${package}-config-version.cmake
    DESTINATION ${folder} COMPONENT ${package})

  get_target_property(library ${arg_TARGET} OUTPUT_NAME)
  configure_file(${HEDDLE_PACKAGE_TEMPLATES}/package.pc.in ${CMAKE_BINARY_DIR}/${package}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${package})
endfunction()
