// report-database FOLDER: writes the databases that the browser test of `heddle report` draws: here.db (two GPUs,
// strings that are markup), there.db (to compare with) and problems.txt (a line for each --problem). Needs no GPU.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/Places.h"
#include "tests/unit/recorded_database.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>

using namespace heddle::test;

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: report-database FOLDER\n");
    return 2;
  }
  doctest::Context context; // what fails ends the program
  context.setAsDefaultForAssertsOutOfTestCases();
  const std::string folder = argv[1];
  RecordedDatabase here;
  here.hasSecondGpu = here.hasHostile = true;
  makeRecordedDatabase(folder + "/here.db", here);
  RecordedDatabase there;
  there.slowdown = 1.25;
  there.workloads = 4;
  makeRecordedDatabase(folder + "/there.db", there);
  std::ofstream problems(folder + "/problems.txt");
  for (const std::string &problem : recordedProblems(heddle::test::places().patterns))
    problems << problem << '\n';
  return problems ? 0 : 1;
}
