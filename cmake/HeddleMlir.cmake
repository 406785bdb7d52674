# heddle_link_mlir(<target> <component>...): the one place that knows how LLVM and MLIR are linked.
# A component is an MLIR library target (MLIRArithDialect) or an LLVM component name (core, orcjit).
# By default the target links the shared libMLIR and libLLVM and the list is ignored; with
# HEDDLE_STATIC it links exactly the listed archives. Mixing both would give two copies of LLVM's
# option and TypeID registries in one process, so the exported targets are repaired first.
# The flags of the static link itself are in HeddleLink.
include_guard(GLOBAL)

function(heddle_link_mlir target)
  set_property(TARGET ${target} PROPERTY HEDDLE_MLIR_COMPONENTS ${ARGN})
  if(HEDDLE_STATIC)
    heddle_link_archives(${target} ${ARGN})
  else()
    target_link_libraries(${target} PUBLIC MLIR LLVM)
  endif()
endfunction()

function(heddle_link_archives target)
  foreach(component IN LISTS ARGN)
    if(component MATCHES "^MLIR")
      target_link_libraries(${target} PUBLIC ${component})
    else()
      llvm_map_components_to_libnames(libraries ${component})
      target_link_libraries(${target} PUBLIC ${libraries})
    endif()
  endforeach()
endfunction()

# heddle_add_static_twin(<target> <library>...): <target>_static, the program <target> of a build against shared LLVM linked once
# more as HEDDLE_STATIC links it, from the objects of that build and of its own libraries: what a static build fails to link,
# this does.
function(heddle_add_static_twin target)
  add_executable(${target}_static $<TARGET_OBJECTS:${target}>)
  set_target_properties(${target}_static PROPERTIES LINKER_LANGUAGE CXX RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/static)
  find_package(Threads REQUIRED)
  target_link_libraries(${target}_static PRIVATE ${HEDDLE_SQLITE_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${target}_static PRIVATE ${HEDDLE_STATIC_LINK_OPTIONS})
  foreach(part IN ITEMS ${target} ${ARGN})
    get_target_property(components ${part} HEDDLE_MLIR_COMPONENTS)
    if(components)
      heddle_link_archives(${target}_static ${components})
    endif()
  endforeach()
  foreach(library IN LISTS ARGN)
    target_sources(${target}_static PRIVATE $<TARGET_OBJECTS:${library}>)
  endforeach()
endfunction()

# What LLVM's archives need beside them; a static build demands it, any other leaves the static twins out without it.
foreach(archive z zstd)
  find_library(HEDDLE_ARCHIVE_${archive} NAMES lib${archive}.a)
  mark_as_advanced(HEDDLE_ARCHIVE_${archive})
  if(HEDDLE_STATIC AND NOT HEDDLE_ARCHIVE_${archive})
    message(FATAL_ERROR "HEDDLE_STATIC needs lib${archive}.a (Debian: zlib1g-dev, libzstd-dev)")
  endif()
endforeach()

# The package's exports name the shared LLVM and MLIR on static targets, and leave out what the
# execution engine and the LLVM IR export need.
function(heddle_repair_static_mlir)
  get_property(libraries GLOBAL PROPERTY MLIR_ALL_LIBS)
  foreach(library IN LISTS libraries)
    if(TARGET ${library})
      get_target_property(needs ${library} INTERFACE_LINK_LIBRARIES)
      if(needs)
        list(REMOVE_ITEM needs LLVM MLIR "$<LINK_ONLY:LLVM>" "$<LINK_ONLY:MLIR>")
        set_target_properties(${library} PROPERTIES INTERFACE_LINK_LIBRARIES "${needs}")
      endif()
    endif()
  endforeach()
  llvm_map_components_to_libnames(jit support core native orcjit passes perfjitevents)
  set_property(TARGET MLIRSupport APPEND PROPERTY INTERFACE_LINK_LIBRARIES LLVMSupport)
  llvm_map_components_to_libnames(remarks remarks)
  set_property(TARGET MLIRRemarkStreamer APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${remarks})
  set_property(TARGET MLIRTargetLLVMIRExport APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${jit})
  set_property(TARGET MLIRExecutionEngine APPEND PROPERTY INTERFACE_LINK_LIBRARIES
    MLIRBuiltinToLLVMIRTranslation MLIRExecutionEngineUtils MLIRLLVMDialect
    MLIRLLVMToLLVMIRTranslation MLIRTargetLLVMIRExport ${jit})
  # z3 is dropped: only the static analyzer's solver refers to it.
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
    "rt;dl;m;pthread;${HEDDLE_ARCHIVE_z};${HEDDLE_ARCHIVE_zstd};LLVMDemangle")
endfunction()

if(HEDDLE_ARCHIVE_z AND HEDDLE_ARCHIVE_zstd)
  heddle_repair_static_mlir()
endif()
