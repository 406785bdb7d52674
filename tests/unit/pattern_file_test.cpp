// A pattern from text: what loads, what is refused and where the message points, how sizes are bound, and
// when two spellings are one pattern.
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternSource.h"
#include "tests/unit/counted_allocations.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>

using namespace heddle;

namespace {

std::string patternText(const std::string &body, const std::string &head = "@p()") {
  return "attn.pattern " + head + " {\n" + body + "}\n";
}

const char *kWindow = "  %m = attn.window [%left, 0]\n  attn.softmax union(%m)\n";
const char *kWindowHead = "@w(%left: i32 {attn.default = 7 : i32, attn.min = 2 : i32}, %right: i32)";

std::string failureOf(const std::string &text, const std::string &name = {}) {
  auto file = PatternFile::parse(text, "p.mlir", name);
  REQUIRE_FALSE(file.isOk());
  CHECK(file.status().code() == StatusCode::invalidArgument);
  return file.status().message();
}

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

std::string digestOf(const std::string &text) {
  auto file = PatternFile::parse(text, "p.mlir");
  REQUIRE(file.isOk());
  auto digest = (*file)->digest();
  REQUIRE(digest.isOk());
  return *digest;
}

} // namespace

TEST_CASE("errors carry file, line, column and the line itself") {
  std::string message = failureOf(patternText("  %m = attn.window [-3, 0]\n  attn.softmax union(%m)\n"));
  CHECK(contains(message, "p.mlir:2:8: error: 'attn.window' op expected left >= 0, got -3"));
  CHECK(contains(message, "%m = attn.window [-3, 0]"));
  CHECK(contains(message, "^"));
}

TEST_CASE("a syntax error and an unknown op point at their place") {
  CHECK(contains(failureOf("attn.pattern @p( {\n}\n"), "p.mlir:1:"));
  CHECK(contains(failureOf(patternText("  %m = attn.windov [1, 0]\n")),
                 "p.mlir:2:8: error: custom op 'attn.windov' is unknown"));
}

TEST_CASE("a text without a pattern is refused") {
  CHECK(failureOf("module {}\n") == "p.mlir: error: expected an attn.pattern, found none");
  CHECK(failureOf("") == "p.mlir: error: expected an attn.pattern, found none");
}

TEST_CASE("one of several patterns is named") {
  std::string full = "  %m = attn.full\n  attn.softmax union(%m)\n";
  std::string two = patternText(full, "@a()") + patternText(full, "@b()");
  CHECK(contains(failureOf(two), "several patterns (a, b), choose one with --pattern=NAME"));
  const Status none = PatternFile::parse(two, "p.mlir", "c").status();
  CHECK(none.code() == StatusCode::notFound);
  CHECK(none.message() == "p.mlir: error: no pattern 'c', the file has: a, b");
  auto file = PatternFile::parse(two, "p.mlir", "b");
  REQUIRE(file.isOk());
  CHECK((*file)->pattern().getSymName() == "b");
  std::vector<std::string> names;
  REQUIRE(PatternFile::forEach(two, "p.mlir", [&](const PatternFile &one) {
            names.push_back(one.pattern().getSymName().str());
          }).isOk());
  CHECK(names == std::vector<std::string>{"a", "b"});
  CHECK(PatternFile::forEach("", "p.mlir", [](const PatternFile &) {}).message() ==
        "p.mlir: error: expected an attn.pattern, found none");
}

// By how much the allocations of `work` grow with its size: 2 where they follow it, 4 where they follow its square.
static double growthOf(int size, const std::function<void(int)> &work) {
  work(2); // what is made once
  auto allocationsOf = [&](int chosen) {
    const long before = test::allocationCount;
    work(chosen);
    return double(test::allocationCount - before);
  };
  const double half = allocationsOf(size / 2);
  return allocationsOf(size) / half;
}

TEST_CASE("the work for the patterns of a text grows with their number, not with its square") {
  auto visitAll = [](int patterns) {
    std::string text;
    for (int i = 0; i < patterns; ++i)
      text += patternText("  %m = attn.causal\n  attn.softmax union(%m)\n", "@p" + std::to_string(i) + "()");
    int visited = 0;
    REQUIRE(PatternFile::forEach(text, "p.mlir", [&](const PatternFile &) { ++visited; }).isOk());
    CHECK(visited == patterns);
  };
  CHECK(growthOf(400, visitAll) < 2.2);
}

TEST_CASE(
    "the work for a pattern grows by less than the square of its masks, in a union, an intersection and as branches") {
  for (int kind = 0; kind < 4; ++kind) {
    CAPTURE(kind);
    auto schedule = [&](int number) {
      std::string masks = "  %c = attn.causal\n", columns = "  %c0 = attn.causal\n", all = "%d0", some = "%c0";
      for (int i = 0; i < number; ++i)
        masks += "  %d" + std::to_string(i) + " = attn.dilate %c by " + std::to_string(i + 2) + " at 0\n";
      for (int i = 1; i < number; ++i) {
        all += ", %d" + std::to_string(i);
        some += ", %c" + std::to_string(i);
        columns += "  %c" + std::to_string(i) + " = attn.cols [" + std::to_string(i) + ", 0]\n";
      }
      const std::string texts[] = {columns + "  %u = attn.or " + some + "\n  attn.softmax union(%u)\n",
                                   masks + "  %u = attn.or " + all + "\n  attn.softmax union(%u)\n",
                                   masks + "  %u = attn.and " + all + "\n  attn.softmax union(%u)\n",
                                   masks + "  attn.softmax lse(" + all + ")\n"};
      auto file = PatternFile::parse(patternText(texts[kind]), "p.mlir");
      REQUIRE(file.isOk());
      CHECK((*file)->schedule().isOk());
    };
    CHECK(growthOf(400, schedule) < 3.5);
  }
}

TEST_CASE("diagnostics may be printed: control characters are escaped, long lines and lists are cut") {
  const std::string odd = patternText("  %m = attn.causal /* \x1b[31m \xc2\x9b \xff */ attn.oops\n");
  CHECK(contains(failureOf(odd), "%m = attn.causal /* \\u001b[31m \\u009b \\xff */ attn.oops\n                  ^"));
  const std::string padding(1000, ' ');
  const std::string longLine = failureOf(patternText("  %m = attn.causal" + padding + "attn.oops" + padding + "\n"));
  CHECK(contains(longLine, ": error: "));
  CHECK(contains(longLine, "..."));
  CHECK(longLine.size() < 1000);
  CHECK(failureOf(patternText("  %m = attn." + std::string(100000, 'x') + "\n")).size() < 5000);
  CHECK(contains(failureOf(patternText("  %m = attn.full\n  attn.softmax union(%m)\n", "@\"a\\0Ab\"()")),
                 "expected names without control characters"));
  CHECK(contains(
      failureOf(patternText("  %m = attn.full\n  attn.softmax union(%m)\n", "@" + std::string(300, 'a') + "()")),
      "at most 256 bytes, got 300"));
}

TEST_CASE("a word that is neither a file nor of the library says so") {
  auto file = PatternFile::load("no/such/file.mlir");
  REQUIRE_FALSE(file.isOk());
  CHECK(file.status().code() == StatusCode::notFound);
  CHECK(contains(file.status().message(), "no pattern 'no/such/file.mlir'"));
}

TEST_CASE("the library is inside the program") {
  const std::vector<std::string> names = libraryPatternNames();
  CHECK(names.size() == libraryPatterns().size());
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const std::string &name : names) {
    CAPTURE(name);
    auto file = PatternFile::load(name);
    REQUIRE(file.isOk());
    CHECK((*file)->path() == "library:" + name);
    CHECK((*file)->pattern().getSymName() == name);
  }
  CHECK(PatternFile::load("library:causal").isOk());
  CHECK(PatternFile::load("library:causal.mlir").status().code() == StatusCode::notFound);
}

TEST_CASE("sizes are written as people write them") {
  auto file = PatternFile::parse(patternText(kWindow, kWindowHead), "p.mlir");
  REQUIRE(file.isOk());
  auto bound = (*file)->bindParameters({"right=2^10", "left=1.5k"});
  REQUIRE(bound.isOk());
  CHECK(*bound == std::vector<int64_t>{1536, 1024});
  CHECK((*file)->checkSizeNames({"right=3", "left"}).isOk());
  CHECK((*file)->checkSizeNames({"lft=3"}).message() ==
        "pattern 'w' has no size 'lft', did you mean 'left'?; it has: left, right");
  CHECK((*file)->bindParameters({"right=2G"}).status().message() == "expected right=NUMBER (32 bits), got 'right=2G'");
}

TEST_CASE("sizes come from assignments over defaults, in order") {
  auto file = PatternFile::parse(patternText(kWindow, kWindowHead), "p.mlir");
  REQUIRE(file.isOk());
  auto bound = (*file)->bindParameters({"right=3"});
  REQUIRE(bound.isOk());
  CHECK(*bound == std::vector<int64_t>{7, 3});
  bound = (*file)->bindParameters({"right=3", "left=9", "right=4"});
  REQUIRE(bound.isOk());
  CHECK(*bound == std::vector<int64_t>{9, 4});
}

TEST_CASE("assignments that fit no size are refused with what would") {
  auto file = PatternFile::parse(patternText(kWindow, kWindowHead), "p.mlir");
  REQUIRE(file.isOk());
  auto failure = [&](const std::vector<std::string> &assignments) {
    auto bound = (*file)->bindParameters(assignments);
    REQUIRE_FALSE(bound.isOk());
    CHECK(bound.status().code() == StatusCode::invalidArgument);
    return bound.status().message();
  };
  CHECK(failure({}) == "size 'right' has no default: give it with --set right=NUMBER");
  CHECK(failure({"right=0", "width=3"}) == "pattern 'w' has no size 'width', it has: left, right");
  CHECK(failure({"right=0", "left=1"}) == "expected left >= 2, got 1");
  CHECK(failure({"right=-1"}) == "expected right >= 0, got -1");
  for (const char *bad : {"right=", "right", "right=3x", "right= 3", "right=4294967296", "right=99999999999999999999"})
    CHECK(failure({bad}) == "expected right=NUMBER (32 bits), got '" + std::string(bad) + "'");
}

TEST_CASE("names, order of writing, documentation and defaults do not change the digest") {
  std::string plain = digestOf(
      patternText("  %a = attn.causal\n  %b = attn.cols [4, 0]\n  %m = attn.or %a, %b\n  attn.softmax union(%m)\n"));
  CHECK(plain.size() == 64);
  CHECK(plain == digestOf(patternText("  %x = attn.causal\n  %y = attn.cols [4, 0]\n  %n = attn.or %x, %y\n"
                                      "  %d = attn.dilate %n by 1 at 0\n  attn.softmax union(%d)\n",
                                      "@other()")));
  CHECK(plain ==
        digestOf(patternText(
            "  %b = attn.cols [4, 0]\n  %a = attn.causal\n  %m = attn.or %a, %b\n  attn.softmax union(%m)\n")));
  const std::string branches = "  attn.softmax lse(%s, %t) of %e\n",
                    scores = "  %c = attn.scaled\n  %e = attn.softcap %c by 2.0\n";
  const std::string near = "  %a = attn.causal\n  %s = attn.segment %a by [8]\n",
                    far = "  %d = attn.full\n  %t = attn.segment %d by [16]\n";
  CHECK(digestOf(patternText(near + far + scores + branches)) == digestOf(patternText(scores + far + near + branches)));
  std::string sized = digestOf(patternText(kWindow, kWindowHead));
  CHECK(sized == digestOf(patternText("  %m = attn.window [%n, 0]\n  attn.softmax union(%m)\n",
                                      "@v(%n: i32 {attn.min = 2 : i32}, %unused: i32)")));
}

TEST_CASE("what changes the kept pairs changes the digest") {
  std::string end = "\n  attn.softmax union(%m)\n";
  std::vector<std::string> texts = {patternText("  %m = attn.causal" + end),
                                    patternText("  %m = attn.full" + end),
                                    patternText("  %m = attn.causal" + end, "@p() q_origin(end)"),
                                    patternText("  %m = attn.window [4, 0]" + end),
                                    patternText("  %m = attn.window [5, 0]" + end),
                                    patternText("  %m = attn.window [0, 4]" + end)};
  for (size_t i = 0; i < texts.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      CHECK_MESSAGE(digestOf(texts[i]) != digestOf(texts[j]), texts[i] << texts[j]);
}

TEST_CASE("the printed text is the same pattern again") {
  std::string text = patternText(kWindow, kWindowHead);
  auto file = PatternFile::parse(text, "p.mlir");
  REQUIRE(file.isOk());
  CHECK(digestOf((*file)->text()) == digestOf(text));
}
