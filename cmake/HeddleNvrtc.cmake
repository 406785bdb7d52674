# heddle_install_nvrtc(<component>): the NVRTC of <build>/nvrtc, which ./dev setup leaves there, for an installed libheddle: what
# was fetched is copied to <libdir>/heddle/nvrtc, of a toolkit on this machine a link to its folder is left there. Read when
# the tree is installed: set-up may have come after CMake. Where set-up found none, nothing is installed.
function(heddle_install_nvrtc component)
  install(CODE "set(nvrtc_build \"${CMAKE_BINARY_DIR}/nvrtc\")\nset(nvrtc_libdir \"${CMAKE_INSTALL_LIBDIR}/heddle\")" COMPONENT ${component})
  install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install-nvrtc.cmake COMPONENT ${component})
endfunction()
