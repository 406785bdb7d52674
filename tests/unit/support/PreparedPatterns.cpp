#include "support/PreparedPatterns.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFile.h"

#include <doctest/doctest.h>

namespace heddle::test {

PreparedPattern preparedFrom(const std::string &folder, const std::string &name) {
  auto file = PatternFile::load(folder + "/" + name + ".mlir");
  REQUIRE_MESSAGE(file.isOk(), file.status().message());
  auto pattern = preparePattern(**file);
  REQUIRE_MESSAGE(pattern.isOk(), pattern.status().message());
  return pattern.take();
}

} // namespace heddle::test
