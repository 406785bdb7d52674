#include "compiler/Report/SlowKernels.h"
#include "runtime/Core/ReadFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>

namespace heddle::report {
namespace {

using Json = nlohmann::json;

class Reader {
public:
  explicit Reader(std::string path) : path(std::move(path)) {}

  Status read(const std::string &text) {
    const Json whole = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (whole.is_object() && whole.contains("slow"))
      return readStats(whole);
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      where = path + ": line " + std::to_string(++number) + ": ";
      if (line.find_first_not_of(" \t\r") == std::string::npos)
        continue;
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!json.is_object())
        return wrong("expected the JSON of heddle.stats(), or of one drift in each line");
      HEDDLE_TRY(json.contains("slow") ? readStats(json) : add(json));
    }
    return {};
  }

  std::vector<SlowKernel> take() { return std::move(found); }

private:
  Status wrong(const std::string &what) const { return Status::invalidArgument(where + what); }

  Status readStats(const Json &stats) {
    const Json &slow = stats["slow"];
    if (!slow.is_array())
      return wrong("\"slow\": expected a list of drifts");
    for (const Json &json : slow)
      HEDDLE_TRY(add(json));
    return {};
  }

  Status add(const Json &json) {
    if (!json.is_object())
      return wrong("expected a drift, an object");
    SlowKernel slow;
    slow.file = path;
    for (const auto &[key, text] : {std::pair("kernel", &slow.kernel),
                                    {"pattern", &slow.pattern},
                                    {"device", &slow.device},
                                    {"bus", &slow.bus},
                                    {"problem", &slow.problem}}) {
      if (!json.contains(key) || !json[key].is_string())
        return wrong(std::string("\"") + key + "\": expected a text");
      *text = json[key].get<std::string>();
    }
    for (const auto &[key, number] :
         {std::pair("expected_us", &slow.expectedUs), {"median_us", &slow.medianUs}, {"factor", &slow.factor}}) {
      if (!json.contains(key) || !json[key].is_number() || !(json[key].get<double>() > 0))
        return wrong(std::string("\"") + key + "\": expected a number above 0");
      *number = json[key].get<double>();
    }
    slow.spreadUs = json.contains("spread_us") && json["spread_us"].is_number() ? json["spread_us"].get<double>() : 0;
    slow.samples = integerOf(json, "samples");
    slow.sinceUnix = integerOf(json, "since_unix");
    put(slow);
    return {};
  }

  static int64_t integerOf(const Json &json, const char *key) {
    return json.contains(key) && json[key].is_number_integer() ? json[key].get<int64_t>() : 0;
  }

  void put(const SlowKernel &slow) {
    const auto same = std::find_if(found.begin(), found.end(), [&](const SlowKernel &other) {
      return other.kernel == slow.kernel && other.problem == slow.problem && other.device == slow.device &&
             other.bus == slow.bus;
    });
    if (same == found.end())
      found.push_back(slow);
    else
      *same = slow;
  }

  std::string path, where = path + ": ";
  std::vector<SlowKernel> found;
};

} // namespace

Result<std::vector<SlowKernel>> readSlowKernels(const std::string &path) {
  HEDDLE_ASSIGN(const std::string text, readTextFile(path, {"file of counters", int64_t(16) << 20}));
  Reader reader(path);
  HEDDLE_TRY(reader.read(text));
  return reader.take();
}

} // namespace heddle::report
