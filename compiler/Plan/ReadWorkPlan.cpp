//===- ReadWorkPlan.cpp - a plan from JSON --------------------------------===//
#include "compiler/Plan/WorkPlan.h"
#include "runtime/Core/Kinds.h"
#include "runtime/Core/ParseCount.h"
#include "runtime/Core/ReadFile.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace heddle {
namespace {

using Json = nlohmann::ordered_json; // sizes keep their order

/// A value and where it stands: "plan.json: patterns[2].set".
struct Place {
  const Json &value;
  std::string where;
  const char *separator = "."; ///< before the name of what is inside

  Status expected(const std::string &what) const {
    return Status::invalidArgument(where + ": expected " + what + ", got " + value.dump());
  }
  Place at(const std::string &key) const { return {value.at(key), where + separator + key}; }
  Place at(size_t index) const { return {value[index], where + "[" + std::to_string(index) + "]"}; }
};

using Readers = std::map<std::string, std::function<Status(const Place &)>>;

Status readObject(const Place &place, const Readers &readers) {
  std::string known;
  for (const auto &reader : readers)
    known += (known.empty() ? "" : ", ") + reader.first;
  if (!place.value.is_object())
    return place.expected("an object with " + known);
  for (const auto &entry : place.value.items()) {
    const auto reader = readers.find(entry.key());
    if (reader == readers.end())
      return Status::invalidArgument(place.where + ": unknown key '" + entry.key() + "'; there are " + known);
    HEDDLE_TRY(reader->second(place.at(entry.key())));
  }
  return {};
}

/// A list, or one value in place of a list of one.
template <class Read> Status readList(const Place &place, Read read) {
  if (!place.value.is_array())
    return read(place);
  if (place.value.empty())
    return place.expected("at least one value");
  for (size_t i = 0; i < place.value.size(); ++i)
    HEDDLE_TRY(read(place.at(i)));
  return {};
}

Status readText(const Place &place, std::string &text) {
  if (!place.value.is_string() || place.value.get<std::string>().empty())
    return place.expected("a text");
  text = place.value.get<std::string>();
  return {};
}

/// An integer, or a text that stands for one ("8k").
std::optional<int64_t> countIn(const Json &value) {
  if (value.is_string())
    return parseCount(value.get<std::string>());
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

Status readCount(const Place &place, int64_t &count) {
  constexpr int64_t kMost = int64_t(1) << 40;
  const std::optional<int64_t> read = countIn(place.value);
  if (!read || *read < 1 || *read > kMost)
    return place.expected("an integer of at least 1");
  count = *read;
  return {};
}

Status readSizes(const Place &place, std::vector<std::string> &sizes) {
  if (!place.value.is_object())
    return place.expected("an object of sizes, such as {\"left\": 1023}");
  for (const auto &entry : place.value.items()) {
    const std::optional<int64_t> count = countIn(entry.value());
    if (!count && !entry.value().is_number())
      return place.at(entry.key()).expected("a number");
    sizes.push_back(entry.key() + "=" + (entry.value().is_string() ? std::to_string(*count) : entry.value().dump()));
  }
  return {};
}

/// Whether a word can only be the name of a pattern of the library, where there is no such file.
bool isPlainName(const std::string &word) { return word.find_first_of("/.:") == std::string::npos; }

/// The first key that an object has twice, of which a reader would see one only.
std::optional<std::string> repeatedKey(const std::string &text) {
  std::vector<std::set<std::string>> keys; // of the objects around the place
  std::optional<std::string> repeated;
  const Json::parser_callback_t see = [&](int, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second && !repeated)
      repeated = parsed.get<std::string>();
    return true;
  };
  static_cast<void>(Json::parse(text, see, /*allow_exceptions=*/false, /*ignore_comments=*/true));
  return repeated;
}

class PlanReader {
public:
  PlanReader(WorkPlan &plan, std::string folder) : plan(plan), folder(std::move(folder)) {}

  Status read(const Place &top) {
    HEDDLE_TRY(readObject(
        top,
        {
            {"patterns",
             [this](const Place &place) {
               return readList(place, [this](const Place &one) { return addPattern(one); });
             }},
            {"head_dims", [this](const Place &place) { return readHeadDims(place, plan.headDims); }},
            {"dtypes",
             [this](const Place &place) {
               return readList(place, [this](const Place &one) { return addDType(one); });
             }},
            {"kinds",
             [this](const Place &place) { return readList(place, [this](const Place &one) { return addKind(one); }); }},
            {"archs", [this](const Place &place) { return readTexts(place, plan.archs); }},
            {"problems", [this](const Place &place) { return readProblems(place, plan.problems); }},
            {"gpus", [this](const Place &place) { return readTexts(place, plan.gpus); }},
        }));
    if (plan.patterns.empty())
      return Status::invalidArgument(top.where + ": expected \"patterns\", a list of files");
    if (plan.headDims.empty())
      plan.headDims = {{64, 64}, {128, 128}};
    if (plan.dtypes.empty())
      plan.dtypes = {kDefaultDType};
    if (plan.kinds.empty())
      plan.kinds = {Kind()};
    return {};
  }

private:
  static Status readTexts(const Place &place, std::vector<std::string> &texts) {
    return readList(place, [&](const Place &one) { return readText(one, texts.emplace_back()); });
  }

  Status addPattern(const Place &place) {
    PlanPattern &pattern = plan.patterns.emplace_back();
    if (place.value.is_string())
      HEDDLE_TRY(readText(place, pattern.file));
    else
      HEDDLE_TRY(
          readObject(place, {{"file", [&](const Place &at) { return readText(at, pattern.file); }},
                             {"pattern", [&](const Place &at) { return readText(at, pattern.pattern); }},
                             {"name", [&](const Place &at) { return readText(at, pattern.name); }},
                             {"set", [&](const Place &at) { return readSizes(at, pattern.sizes); }},
                             {"gradients_of", [&](const Place &at) { return readTexts(at, pattern.gradientsOf); }},
                             {"head_dims", [&](const Place &at) { return readHeadDims(at, pattern.headDims); }},
                             {"problems", [&](const Place &at) { return readProblems(at, pattern.problems); }}}));
    if (pattern.file.empty())
      return place.expected("\"file\"");
    pattern.label = pattern.file;
    const std::string here = std::filesystem::path(folder) / pattern.file; // an absolute path stays what it is
    std::error_code ignored;
    const bool isFile = std::filesystem::exists(here, ignored) && !std::filesystem::is_directory(here, ignored);
    const bool isOfLibrary = pattern.file.rfind("library:", 0) == 0;
    if (!isOfLibrary)
      pattern.file = !isFile && isPlainName(pattern.file) ? "library:" + pattern.file : here;
    return {};
  }

  static Status readHeadDims(const Place &place, std::vector<PlanHeadDims> &list) {
    return readList(place, [&](const Place &one) { return addHeadDims(one, list); });
  }

  static Status addHeadDims(const Place &place, std::vector<PlanHeadDims> &list) {
    PlanHeadDims &dims = list.emplace_back();
    if (!place.value.is_object()) {
      HEDDLE_TRY(readCount(place, dims.head));
      dims.value = dims.head;
      return {};
    }
    dims = {0, 0};
    HEDDLE_TRY(readObject(place, {{"head", [&](const Place &at) { return readCount(at, dims.head); }},
                                  {"value", [&](const Place &at) { return readCount(at, dims.value); }}}));
    return dims.head && dims.value ? Status() : place.expected("\"head\" and \"value\"");
  }

  Status addDType(const Place &place) {
    std::string name;
    HEDDLE_TRY(readText(place, name));
    const std::optional<DType> dtype = findElement(&ElementTraits::name, name, &ElementTraits::isComputed);
    if (!dtype)
      return place.expected(elementList(&ElementTraits::isComputed));
    plan.dtypes.push_back(*dtype);
    return {};
  }

  Status addKind(const Place &place) {
    std::string name, known;
    HEDDLE_TRY(readText(place, name));
    for (const Kind &kind : Kind::all()) {
      if (kind.hasPages()) // which no search makes inputs of
        continue;
      known += (known.empty() ? "" : ", ") + kind.name();
      if (kind.name() == name) {
        plan.kinds.push_back(kind);
        return {};
      }
    }
    return place.expected("one of " + known);
  }

  static Status readProblems(const Place &place, std::vector<PlanProblem> &list) {
    return readList(place, [&](const Place &one) { return addProblem(one, list); });
  }

  static Status addProblem(const Place &place, std::vector<PlanProblem> &list) {
    PlanProblem problem{1, 0, 0, 0, 0};
    HEDDLE_TRY(readObject(place, {{"batch", [&](const Place &at) { return readCount(at, problem.batch); }},
                                  {"heads", [&](const Place &at) { return readCount(at, problem.heads); }},
                                  {"kv_heads", [&](const Place &at) { return readCount(at, problem.kvHeads); }},
                                  {"seqlen", [&](const Place &at) { return readCount(at, problem.seqlenQ); }},
                                  {"seqlen_k", [&](const Place &at) { return readCount(at, problem.seqlenK); }}}));
    if (!problem.heads || !problem.seqlenQ)
      return place.expected("\"heads\" and \"seqlen\"");
    if (!problem.kvHeads)
      problem.kvHeads = problem.heads;
    if (!problem.seqlenK)
      problem.seqlenK = problem.seqlenQ;
    if (problem.heads % problem.kvHeads)
      return place.expected("heads that are a multiple of kv_heads");
    list.push_back(problem);
    return {};
  }

  WorkPlan &plan;
  std::string folder;
};

/// Objects whose keys keep their order look through all of them for each: they must be few.
Status checkObjects(const nlohmann::json &json, const std::string &label) {
  constexpr size_t kMostKeys = 256; // of a pattern's sizes
  std::vector<const nlohmann::json *> rest = {&json};
  while (!rest.empty()) {
    const nlohmann::json &value = *rest.back();
    rest.pop_back();
    if (value.is_object() && value.size() > kMostKeys)
      return Status::invalidArgument(label + ": expected at most " + std::to_string(kMostKeys) +
                                     " keys of an object, got " + std::to_string(value.size()));
    for (const nlohmann::json &inner : value)
      if (inner.is_structured())
        rest.push_back(&inner);
  }
  return {};
}

/// At least as many as pack or sweep make of the plan.
double combinations(const WorkPlan &plan) {
  double count = 0;
  for (const PlanPattern &pattern : plan.patterns) {
    const double kernels =
        double(plan.headDimsOf(pattern).size()) * double(plan.dtypes.size()) * double(plan.kinds.size());
    const double tunes = double(plan.problemsOf(pattern).size()) * std::max(1.0, double(plan.gpus.size()));
    count += kernels * std::max({1.0, tunes, double(plan.archs.size())});
  }
  return count;
}

} // namespace

Result<WorkPlan> WorkPlan::parse(const std::string &text, const std::string &label, const std::string &folder) {
  Json json;
  try {
    HEDDLE_TRY(checkObjects(nlohmann::json::parse(text, nullptr, true, /*ignore_comments=*/true), label));
    json = Json::parse(text, nullptr, true, /*ignore_comments=*/true);
  } catch (const Json::exception &error) { // numbers beyond any double among them
    return Status::invalidArgument(label + ": expected a plan in JSON: " + error.what());
  }
  if (const std::optional<std::string> key = repeatedKey(text))
    return Status::invalidArgument(label + ": the key '" + *key + "' is given twice in one object");
  WorkPlan plan;
  HEDDLE_TRY(PlanReader(plan, folder).read({json, label, ": "}));
  if (const double most = 1e6, count = combinations(plan); count > most)
    return Status::invalidArgument(label + ": expected at most 1000000 combinations, got " +
                                   std::to_string(int64_t(count)));
  return plan;
}

Result<WorkPlan> WorkPlan::load(const std::string &path) {
  constexpr int64_t kMostBytes = int64_t(16) << 20;
  const Result<std::string> text = readTextFile(path, {"plan", kMostBytes});
  if (!text)
    return Status::invalidArgument(text.status().message());
  return parse(*text, path, std::filesystem::path(path).parent_path().string());
}

} // namespace heddle
