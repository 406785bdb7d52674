# Text tests: the dialect through heddle-opt, the command line through heddle. They need lit and
# FileCheck (llvm-22-dev); without them the tests are skipped with that reason.
if(NOT TARGET heddle)
  return()
endif()
set(HEDDLE_LIT_FOLDERS dialect transforms emit cli)
find_program(HEDDLE_LIT NAMES lit llvm-lit HINTS ${HEDDLE_LLVM_PREFIX}/bin)
find_program(HEDDLE_FILECHECK NAMES FileCheck HINTS ${HEDDLE_LLVM_PREFIX}/bin)
if(HEDDLE_LIT AND HEDDLE_FILECHECK)
  get_filename_component(HEDDLE_FILECHECK_FOLDER ${HEDDLE_FILECHECK} DIRECTORY)
  configure_file(${CMAKE_SOURCE_DIR}/tests/lit/lit.site.cfg.py.in ${CMAKE_BINARY_DIR}/tests/lit/lit.site.cfg.py @ONLY)
  foreach(folder IN LISTS HEDDLE_LIT_FOLDERS)
    add_test(NAME lit.${folder} COMMAND ${HEDDLE_LIT} -v ${CMAKE_BINARY_DIR}/tests/lit --filter ":: ${folder}/")
    set_tests_properties(lit.${folder} PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
  endforeach()
  set_tests_properties(lit.cli PROPERTIES COST 100)
else()
  foreach(folder IN LISTS HEDDLE_LIT_FOLDERS)
    add_test(NAME lit.${folder} COMMAND ${CMAKE_COMMAND} -E echo "skipped: no lit or FileCheck (llvm-22-dev) at configure time")
    set_tests_properties(lit.${folder} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped:")
  endforeach()
endif()

# docs/reference.md is what `ninja heddle-doc` makes of the op definitions.
add_test(NAME docs.reference
  COMMAND ${CMAKE_COMMAND} -E compare_files ${CMAKE_BINARY_DIR}/dialect/IR/Attn.md ${CMAKE_SOURCE_DIR}/docs/reference.md)

# docs/gallery.md and its pictures are what docs/make-gallery.sh makes of patterns/.
add_test(NAME docs.gallery COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/gallery.sh ${CMAKE_SOURCE_DIR} $<TARGET_FILE:heddle>)
set_tests_properties(docs.gallery PROPERTIES TIMEOUT ${HEDDLE_HANG_SECONDS})
