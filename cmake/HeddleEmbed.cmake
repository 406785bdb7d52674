# heddle_embed(<target> OUTPUT <name>.cpp ACCESSOR <function> BASE <folder> FILES <file>...):
# adds a generated source to <target> that holds the bytes of the files and defines
# `const std::vector<heddle::EmbeddedFile> &heddle::<function>()`, which who calls it declares, in the order given. A file
# is called by its path relative to BASE. Changing a file rebuilds the source; an empty file is an
# error, since a truncated checkout would otherwise embed nothing silently.
# The same file is the generator: `cmake -P` runs the second half at build time.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  set(HEDDLE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

  function(heddle_embed target)
    cmake_parse_arguments(arg "" "OUTPUT;ACCESSOR;BASE" "FILES" ${ARGN})
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${arg_OUTPUT})
    list(JOIN arg_FILES "|" files)
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DACCESSOR=${arg_ACCESSOR} -DBASE=${arg_BASE}
              "-DFILES=${files}" -P ${HEDDLE_EMBED_SCRIPT}
      DEPENDS ${arg_FILES} ${HEDDLE_EMBED_SCRIPT}
      COMMENT "Embedding ${arg_OUTPUT}"
      VERBATIM)
    target_sources(${target} PRIVATE ${output})
  endfunction()
  return()
endif()

set(arrays "")
set(rows "")
set(number 0)
string(REPLACE "|" ";" FILES "${FILES}")
foreach(file IN LISTS FILES)
  file(READ ${file} hex HEX)
  if(hex STREQUAL "")
    message(FATAL_ERROR "${file} is empty")
  endif()
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  # 24 bytes of five characters each to a line.
  string(REPEAT "....." 24 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  file(RELATIVE_PATH name ${BASE} ${file})
  string(APPEND arrays "const unsigned char bytes${number}[] = {\n${bytes}};\n")
  string(APPEND rows "      {\"${name}\", text(bytes${number}, sizeof bytes${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE ${OUTPUT} "// Generated from the listed files; not to be edited.
#include \"codegen/Skeletons/Shared/EmbeddedSources.h\"

namespace {
${arrays}
std::string_view text(const unsigned char *bytes, std::size_t size) {
  return {reinterpret_cast<const char *>(bytes), size};
}
} // namespace

namespace heddle {
const std::vector<EmbeddedFile> &${ACCESSOR}() {
  static const std::vector<EmbeddedFile> files = {
${rows}  };
  return files;
}
} // namespace heddle
")
