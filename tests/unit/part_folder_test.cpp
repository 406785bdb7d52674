//===- part_folder_test.cpp - what is beside a result until it is whole -----===//
#include "process_fixture.h"
#include "runtime/Core/PartFolder.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace heddle;
using namespace heddle::test;

namespace {

int entries(const std::string &folder) {
  int count = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    count += entry.exists();
  return count;
}

} // namespace

TEST_CASE("a part folder goes with its owner, and what a killed process left with the next one") {
  ScratchFolder folder;
  {
    Result<PartFolder> part = PartFolder::beside(folder / "result");
    REQUIRE(part.isOk());
    writeFile(part->file("part"), "half");
    CHECK(readFile(part->file("part")) == "half");
    CHECK(entries(folder.path()) == 1);
  }
  CHECK(entries(folder.path()) == 0);
  CHECK(waitFor(startChild([&] {
          Result<PartFolder> part = PartFolder::beside(folder / "result");
          if (part)
            writeFile(part->file("part"), "half"), raise(SIGKILL);
          return 1;
        })) == 200 + SIGKILL);
  CHECK(entries(folder.path()) == 1);
  std::filesystem::create_directory(folder / ".another-folder");
  {
    CHECK(PartFolder::beside(folder / "other-result").isOk());
  }
  CHECK(entries(folder.path()) == 1);
  CHECK(std::filesystem::exists(folder / ".another-folder"));
}

TEST_CASE("a part folder of a process that lives stays, whoever else makes one") {
  ScratchFolder folder;
  Result<PartFolder> mine = PartFolder::beside(folder / "result");
  REQUIRE(mine.isOk());
  writeFile(mine->file("part"), "half");
  CHECK(waitFor(startChild([&] {
          std::vector<std::thread> threads;
          for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
              for (int i = 0; i < 50; ++i) {
                Result<PartFolder> part = PartFolder::beside(folder / "result");
                if (!part)
                  _exit(1);
                writeFile(part->file("part"), "theirs");
                if (readFile(part->file("part")) != "theirs")
                  _exit(2);
              }
            });
          for (std::thread &thread : threads)
            thread.join();
          return 0;
        })) == 0);
  CHECK(readFile(mine->file("part")) == "half");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("where nothing can be written, a part folder says so") {
  CHECK(PartFolder::beside("/no/such/folder/result").status().code() == StatusCode::io);
  CHECK(PartFolder::beside("/no/such/folder/result").status().message() ==
        "'/no/such/folder/result': cannot write in its folder: No such file or directory");
}
