# heddle_link_mlir(<target> <component>...): the one place that knows how LLVM and MLIR are linked.
# A component is an MLIR library target (MLIRArithDialect) or an LLVM component name (core, orcjit).
# By default the target links the shared libMLIR and libLLVM and the list is ignored; with
# HEDDLE_STATIC it links exactly the listed archives. Mixing both would give two copies of LLVM's
# option and TypeID registries in one process, so the exported targets are repaired first.
# The flags of the static link itself are in HeddleLink.
include_guard(GLOBAL)

function(heddle_link_mlir target)
  if(NOT HEDDLE_STATIC)
    target_link_libraries(${target} PUBLIC MLIR LLVM)
    return()
  endif()
  foreach(component IN LISTS ARGN)
    if(component MATCHES "^MLIR")
      target_link_libraries(${target} PUBLIC ${component})
    else()
      llvm_map_components_to_libnames(libraries ${component})
      target_link_libraries(${target} PUBLIC ${libraries})
    endif()
  endforeach()
endfunction()

macro(heddle_static_archive name file)
  find_library(HEDDLE_ARCHIVE_${name} NAMES ${file} REQUIRED)
  mark_as_advanced(HEDDLE_ARCHIVE_${name})
endmacro()

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
  set_property(TARGET MLIRTargetLLVMIRExport APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${jit})
  set_property(TARGET MLIRExecutionEngine APPEND PROPERTY INTERFACE_LINK_LIBRARIES
    MLIRBuiltinToLLVMIRTranslation MLIRExecutionEngineUtils MLIRLLVMDialect
    MLIRLLVMToLLVMIRTranslation MLIRTargetLLVMIRExport ${jit})
  heddle_static_archive(z libz.a)
  heddle_static_archive(zstd libzstd.a)
  # z3 is dropped: only the static analyzer's solver refers to it.
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES
    "rt;dl;m;pthread;${HEDDLE_ARCHIVE_z};${HEDDLE_ARCHIVE_zstd};LLVMDemangle")
endfunction()

if(HEDDLE_STATIC)
  heddle_repair_static_mlir()
endif()
