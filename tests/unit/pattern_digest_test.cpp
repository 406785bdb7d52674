//===- pattern_digest_test.cpp - what changes code changes the digest -------------===//
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "support/PatternFiles.h"

#include <regex>

using namespace heddle;
using namespace heddle::test;

namespace {

/// The text without one attribute of an argument or an op, for each that it has.
std::vector<std::string> textsWithoutAnAttribute(const std::string &text) {
  const std::regex attribute(R"(attn\.[a-z_]+ = ("[^"]*"|[^,}]+)(, )?)");
  std::vector<std::string> texts;
  for (auto found = std::sregex_iterator(text.begin(), text.end(), attribute); found != std::sregex_iterator(); ++found)
    texts.push_back(text.substr(0, size_t(found->position())) +
                    text.substr(size_t(found->position() + found->length())));
  return texts;
}

struct Compiled {
  std::string digest, functions;
};

/// Nothing where the text is no pattern without its attribute.
std::optional<Compiled> compiledFrom(const std::string &text) {
  auto file = PatternFile::parse(text, "test.mlir");
  if (!file)
    return std::nullopt;
  auto prepared = preparePattern(**file);
  if (!prepared)
    return std::nullopt;
  return Compiled{prepared->digest, prepared->functions.usual};
}

} // namespace

TEST_CASE("every attribute of the library that changes the functions changes the digest") {
  int removed = 0, changed = 0;
  for (const std::string &path : libraryPatterns()) {
    CAPTURE(path);
    const std::string text = loaded(path)->text();
    const std::optional<Compiled> whole = compiledFrom(text);
    REQUIRE(whole);
    for (const std::string &without : textsWithoutAnAttribute(text)) {
      CAPTURE(without);
      const std::optional<Compiled> other = compiledFrom(without);
      if (!other)
        continue;
      ++removed;
      changed += other->functions != whole->functions;
      if (other->functions != whole->functions)
        CHECK(other->digest != whole->digest);
    }
  }
  CHECK(removed > 40);
  CHECK(changed > 0);
}

TEST_CASE("names, documentation and defaults are not in the digest, bounds are") {
  const std::string body = " { %m = attn.window [%a, 0] attn.softmax union(%m) }";
  const auto digestOf = [&](const std::string &attributes) {
    return compiledFrom("attn.pattern @p(%a: i32" + attributes + ")" + body)->digest;
  };
  const std::string plain = digestOf("");
  CHECK(digestOf(" {attn.default = 7 : i32}") == plain);
  CHECK(digestOf(" {attn.doc = \"keys to the left\"}") == plain);
  CHECK(digestOf(" {attn.min = 0 : i32}") == plain); // what an argument without it has
  CHECK(digestOf(" {attn.min = 2 : i32}") != plain);
}
