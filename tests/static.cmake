# The programs of preset static, linked once more from the objects of this build.
if(TARGET heddle AND NOT HEDDLE_STATIC AND HEDDLE_ARCHIVE_z AND HEDDLE_ARCHIVE_zstd AND NOT "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
  heddle_add_static_test(heddle ARGUMENTS explain ${CMAKE_SOURCE_DIR}/patterns/causal.mlir --seqlen=128 PRINTS "kept pairs"
    LIBRARIES heddle_tools ${HEDDLE_PLAIN_LAYERS} ${HEDDLE_MLIR_LAYERS})
  heddle_add_static_test(heddle-opt ARGUMENTS ${CMAKE_SOURCE_DIR}/patterns/causal.mlir PRINTS "attn.causal"
    LIBRARIES heddle_core heddle_geometry heddle_dialect heddle_schedule)
endif()
