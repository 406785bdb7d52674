# heddle_link_mlir(<target> <component>...): the one place that knows how LLVM and MLIR are linked.
# A component is an MLIR library target (MLIRArithDialect) or an LLVM component name (core, orcjit).
# What the target is linked into takes exactly the listed archives where its property HEDDLE_STATIC is on, as those of
# programs are, which start in a third of the time, and everybody's with the option of that name; the shared libMLIR and libLLVM
# otherwise. Mixing both would give two copies of LLVM's option and TypeID registries in one process, so the exported
# targets are repaired first. The flags of the static link itself are in HeddleLink.
include_guard(GLOBAL)

define_property(TARGET PROPERTY HEDDLE_STATIC INITIALIZE_FROM_VARIABLE HEDDLE_STATIC)

function(heddle_link_mlir target)
  set(archives $<BOOL:$<TARGET_PROPERTY:HEDDLE_STATIC>>)
  foreach(component IN LISTS ARGN)
    set(libraries ${component})
    if(NOT component MATCHES "^MLIR")
      llvm_map_components_to_libnames(libraries ${component})
    endif()
    foreach(library IN LISTS libraries)
      target_link_libraries(${target} PUBLIC $<${archives}:${library}>)
    endforeach()
  endforeach()
  target_link_libraries(${target} PUBLIC $<$<NOT:${archives}>:MLIR> $<$<NOT:${archives}>:LLVM>)
endfunction()

# heddle_link_archives(<program>...): LLVM's archives, wherever they can be linked; beside a sanitizer the shared libraries.
function(heddle_link_archives)
  if(HEDDLE_ARCHIVE_z AND HEDDLE_ARCHIVE_zstd AND NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
    set_target_properties(${ARGN} PROPERTIES HEDDLE_STATIC ON)
    foreach(program IN LISTS ARGN)
      target_link_options(${program} PRIVATE -Wl,--gc-sections)
    endforeach()
  endif()
endfunction()

# What LLVM's archives need beside them; a static build demands it, programs of any other take the shared libraries without.
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
