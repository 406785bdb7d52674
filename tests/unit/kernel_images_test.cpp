//===- kernel_images_test.cpp - several codes in one record -------------------===//
#include "runtime/Core/KernelImages.h"

#include <doctest/doctest.h>

using namespace heddle;

TEST_CASE("one image is stored as it is") {
  CHECK(joinImages({"code"}) == "code");
  CHECK(*splitImages("code", 1) == std::vector<std::string_view>{"code"});
  CHECK(splitImages("", 1)->front().empty());
  CHECK(splitImages("code", 3)->size() == 1); // the code of all three launches
}

TEST_CASE("several images come back, each with a zero byte behind it") {
  const std::vector<std::string> images = {std::string("a\0b\n", 4), "", "heddle-images 1 3\nxyz"};
  const std::string text = joinImages(images);
  auto parts = splitImages(text, 3);
  REQUIRE_MESSAGE(parts.isOk(), parts.status().str());
  for (size_t i = 0; i < images.size(); ++i) {
    CHECK((*parts)[i] == images[i]);
    CHECK((*parts)[i].data()[images[i].size()] == '\0');
  }
  CHECK(joinImages({"", ""}).empty());
}

TEST_CASE("texts that do not hold the images are corrupt") {
  using Case = std::pair<std::string, size_t>;
  const std::string text = joinImages({"one", "two"});
  for (const auto &[bad, count] : {Case{text, 3},
                                   {text.substr(0, text.size() - 1), 2},
                                   {text + "x", 2},
                                   {"heddle-images 1 3 99999999999999999999\n", 2},
                                   {"heddle-images 1 3 4\none", 2},
                                   {"heddle-images 1 3 -1\none\n", 2},
                                   {"heddle-images 1", 2},
                                   {"heddle-images 1 3x3\n", 2}}) {
    const Status status = splitImages(bad, count).status();
    CHECK(status.code() == StatusCode::corrupt);
  }
}

TEST_CASE("the key of a record is of its codes, their order and its plan") {
  const std::string key = contentKeyOf({"a", "b"}, "plan");
  CHECK(key.size() == 64);
  CHECK(contentKeyOf({"a", "b"}, "plan") == key);
  CHECK(contentKeyOf({"a", "b"}, "another grid") != key);
  CHECK(contentKeyOf({"b", "a"}, "plan") != key);
  CHECK(contentKeyOf({"a"}, "b\nplan") != contentKeyOf({"a", "b"}, "plan\n"));
}
