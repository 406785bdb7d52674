//===- counters_test.cpp - rows of kernels, and counters as metrics ---------===//
#include "runtime/Core/CountersText.h"

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <set>
#include <sstream>
#include <vector>

using namespace heddle;

namespace {

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

bool isName(const std::string &text) {
  return !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
}

// The place behind the labels of a line that begin at `at`, or npos: {name="value",...}, with \\, \" and \n in values.
size_t behindLabels(const std::string &line, size_t at) {
  do {
    const size_t equals = line.find('=', ++at);
    if (equals == std::string::npos || !isName(line.substr(at, equals - at)) || line[equals + 1] != '"')
      return std::string::npos;
    for (at = equals + 2; at < line.size() && line[at] != '"'; ++at)
      if (line[at] == '\\' && !std::strchr("\\\"n", line[++at]))
        return std::string::npos;
  } while (++at < line.size() && line[at] == ',');
  return at < line.size() && line[at] == '}' ? at + 1 : std::string::npos;
}

// The rules of OpenMetrics 1.0 for what is written here: families one after the other, each TYPE, UNIT, HELP, then lines
// whose names are the family's with the suffix of its type; no line twice; a unit ends the name.
void checkGrammar(const std::string &text) {
  std::set<std::string> families, series;
  std::string family, type;
  const std::vector<std::string> lines = linesOf(text);
  REQUIRE(lines.back() == "# EOF");
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const std::string &line = lines[i];
    CAPTURE(line);
    std::istringstream words(line);
    std::string hash, what, name;
    if (line.rfind("# ", 0) == 0) {
      words >> hash >> what >> name;
      if (what == "TYPE") {
        words >> type;
        family = name;
        CHECK((type == "counter" || type == "gauge" || type == "summary"));
        CHECK(isName(family));
        CHECK(families.insert(family).second);
      }
      CHECK(name == family);
      if (what == "UNIT") {
        std::string unit;
        words >> unit;
        CHECK(name.substr(name.size() - unit.size() - 1) == "_" + unit);
      }
      continue;
    }
    const size_t end = line.find_first_of("{ ");
    const size_t behind = line[end] == '{' ? behindLabels(line, end) : end;
    REQUIRE(behind != std::string::npos);
    const std::string suffix = line.substr(0, end).substr(family.size());
    CHECK(line.rfind(family, 0) == 0);
    CHECK((type == "counter" ? suffix == "_total"
           : type == "gauge" ? suffix.empty()
                             : suffix == "_count" || suffix == "_sum"));
    CHECK(series.insert(line.substr(0, behind)).second);
    size_t used = 0;
    CHECK(std::stod(line.substr(behind + 1), &used) >= 0);
    CHECK(behind + 1 + used == line.size());
  }
}

} // namespace

TEST_CASE("metrics keep the grammar of OpenMetrics, whatever a GPU is called") {
  const auto counters = std::make_unique<Counters>();
  checkGrammar(metricsText(*counters));
  KernelRow &row = counters->row({"k1", "p1", "forward", "a \"GPU\"\\ of\ntwo lines", "00000000:1b:00.0"});
  row.launches.add(7);
  row.samples.add(0.25);
  counters->row({"k2", "p1", "backward", "b", "00000000:1b:00.0"}).pairs.add(int64_t(1) << 60);
  counters->compilations.add(1.5);
  const std::string text = metricsText(*counters);
  checkGrammar(text);
  for (const char *line :
       {"heddle_launches_total{kernel=\"k1\",pattern=\"p1\",kind=\"forward\",device=\"a "
        "\\\"GPU\\\"\\\\ of\\ntwo lines\",bus=\"00000000:1b:00.0\"} 7\n",
        "heddle_compilations_total 1\n", "heddle_compilation_seconds_total 1.5\n",
        "bus=\"00000000:1b:00.0\"} 1152921504606846976\n", "_sum{kernel=\"k1\"",
        "heddle_kernels_found_total{match=\"nearest bucket\"} 0\n", "heddle_refusals_total{reason=\"notFound\"} 0\n"})
    CHECK_MESSAGE(text.find(line) != std::string::npos, line);
}

TEST_CASE("a kernel has one row on each GPU, and those beyond the last share it") {
  const auto counters = std::make_unique<Counters>();
  KernelRow &first = counters->row({"k", "p", "forward", "GPU", "0"});
  CHECK(&counters->row({"k", "p", "forward", "GPU", "0"}) == &first);
  CHECK(&counters->row({"k", "p", "forward", "GPU", "1"}) != &first);
  for (int i = 0; i < 2 * kMostRows; ++i)
    counters->row({std::to_string(i), "p", "forward", "GPU", "0"});
  CHECK(counters->rowCount() == kMostRows);
  CHECK(counters->row(kMostRows - 1).kernel == "others");
  CHECK(&counters->row({"new", "p", "forward", "GPU", "0"}) == &counters->row(kMostRows - 1));
  CHECK(&counters->row({"k", "p", "forward", "GPU", "0"}) == &first);
}
