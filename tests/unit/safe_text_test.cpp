//===- safe_text_test.cpp - texts of others: what a terminal gets, how much is read -===//
#include "runtime/Core/ReadFile.h"
#include "runtime/Core/SafeText.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sys/stat.h>
#include <thread>

using namespace heddle;
using heddle::test::ScratchFolder;

TEST_CASE("control characters, marks that reorder text and broken UTF-8 are escaped") {
  CHECK(safeText("plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 text\n\tof two lines") ==
        "plain \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 text\n\tof two lines");
  CHECK(safeText("\x1b[31mred\x07\r") == "\\u001b[31mred\\u0007\\u000d");
  CHECK(safeText(std::string_view("a\0b\x7f", 4)) == "a\\u0000b\\u007f");
  CHECK(safeText("\xc2\x9b"
                 "31m") == "\\u009b31m"); // C1
  // bidi controls, a line separator
  CHECK(safeText("\xe2\x80\xae \xe2\x81\xa6 \xe2\x80\xa8") == "\\u202e \\u2066 \\u2028");
  CHECK(safeText("\xff \xc3 \xe2\x82") == "\\xff \\xc3 \\xe2\\x82");
  CHECK(safeText("\xc0\x9b \xe0\x82\x9b \xed\xa0\x80 \xf4\x90\x80\x80") ==
        // too long, too long, half of a pair, too large
        "\\xc0\\x9b \\xe0\\x82\\x9b \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80");
}

TEST_CASE("every byte string becomes text that stays as it is when it is escaped again") {
  uint32_t state = 1;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 40; ++i)
      bytes += char((state = state * 1664525 + 1013904223) >> 24);
    const std::string once = safeText(bytes);
    CHECK(safeText(once) == once);
    CHECK(safeMessage(bytes) == once);
    for (unsigned char c : once)
      CHECK((c >= 0x20 || c == '\n' || c == '\t'));
  }
}

TEST_CASE("a name is one line, and cut at a character") {
  CHECK(safeLine("a\nb\tc") == "a\\u000ab\\u0009c");
  CHECK(safeLine(std::string(200, 'x')) == std::string(200, 'x'));
  CHECK(safeLine(std::string(201, 'x')) == std::string(200, 'x') + "...");
  CHECK(safeLine("xx\xe2\x82\xac", 4) == "xx...");
  CHECK(safeLine(std::string(1 << 20, '\n')).size() < 210);
}

TEST_CASE("a message is cut, its lines and the whole, and says how much is missing") {
  CHECK(safeMessage("short\nlines") == "short\nlines");
  CHECK(safeMessage("") == "");
  CHECK(safeMessage(std::string(3000, 'x') + "\nend") == std::string(2000, 'x') + "... 1000 more bytes\nend");
  std::string lines;
  for (int i = 0; i < 100000; ++i)
    lines += "line\n";
  const std::string cut = safeMessage(lines);
  CHECK(cut.size() < kMostMessageBytes + 100);
  CHECK(cut.find("more bytes") != std::string::npos);
}

TEST_CASE("the whole characters at the front of a piece of text") {
  CHECK(wholeCharacters("") == 0);
  CHECK(wholeCharacters("ab") == 2);
  CHECK(wholeCharacters("ab\xe2\x82") == 2);
  CHECK(wholeCharacters("ab\xe2\x82\xac") == 5);
  CHECK(wholeCharacters("ab\xf0\x9f\x98") == 2);
  CHECK(wholeCharacters("\x82\x82\x82\x82") == 4); // no character will come of these
}

TEST_CASE("what is read has a bound, whatever kind of file it is") {
  ScratchFolder folder;
  const std::string path = folder / "text";
  std::ofstream(path) << "0123456789";
  CHECK(*readTextFile(path, {"text", 10}) == "0123456789");
  CHECK(readTextFile(path, {"text", 9}).status().message() ==
        "text '" + path + "': expected at most 9 bytes, got more");
  CHECK(readTextFile("/dev/zero", {"text", 100000}).status().message() ==
        "text '/dev/zero': expected at most 100000 bytes, got more");
  CHECK(readTextFile("/dev/null", {"text"})->empty());
  CHECK(readTextFile(folder.path(), {"text"}).status().message() ==
        "cannot read text '" + folder.path() + "': Is a directory");
  CHECK(readTextFile(folder / "none", {"text"}).status().code() == StatusCode::notFound);
}

TEST_CASE("a pipe is read to its end") {
  ScratchFolder folder;
  const std::string path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const std::string text(200000, 'x');
  std::thread writer([&] { std::ofstream(path) << text; });
  CHECK(*readTextFile(path, {"text"}) == text);
  writer.join();
}
