# The component heddle_runtime: what an application needs to build against the shipped runtime and to run with it. The tree
# may be moved after it is installed: neither package file names a folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(heddle_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/heddle_runtime)
install(TARGETS heddle_runtime_shared EXPORT heddle_runtime COMPONENT heddle_runtime
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT heddle_runtime
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${CMAKE_SOURCE_DIR}/runtime/Include/heddle.h ${CMAKE_SOURCE_DIR}/runtime/Include/heddle.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/heddle COMPONENT heddle_runtime)
install(EXPORT heddle_runtime NAMESPACE heddle:: FILE heddle_runtime-targets.cmake
  DESTINATION ${heddle_package_folder} COMPONENT heddle_runtime)

# find_package(heddle_runtime 0.1): minor versions may differ in the interface until there is a 1.0.
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/heddle_runtime-config.cmake.in
  ${CMAKE_BINARY_DIR}/heddle_runtime-config.cmake INSTALL_DESTINATION ${heddle_package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/heddle_runtime-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/heddle_runtime-config.cmake ${CMAKE_BINARY_DIR}/heddle_runtime-config-version.cmake
  DESTINATION ${heddle_package_folder} COMPONENT heddle_runtime)

# The prefix as seen from the folder of the .pc file.
file(RELATIVE_PATH HEDDLE_PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${CMAKE_CURRENT_LIST_DIR}/heddle_runtime.pc.in ${CMAKE_BINARY_DIR}/heddle_runtime.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/heddle_runtime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT heddle_runtime)
