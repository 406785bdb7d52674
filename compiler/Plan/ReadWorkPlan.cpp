#include "compiler/Io/JsonPlace.h"
#include "compiler/Plan/WorkPlan.h"
#include "runtime/Core/Kinds.h"
#include "runtime/Core/ReadFile.h"
#include "runtime/Core/SequenceChecks.h"

#include <algorithm>
#include <filesystem>

namespace heddle {
namespace {

Status readSizes(const JsonPlace &place, std::vector<std::string> &sizes) {
  if (!place.value.is_object())
    return place.expected("an object of sizes, such as {\"left\": 1023}");
  for (const auto &entry : place.value.items()) {
    const JsonPlace at = place.at(entry.key());
    const std::optional<int64_t> count = at.count();
    if (!count && !entry.value().is_number())
      return at.expected("a number");
    sizes.push_back(entry.key() + "=" + (entry.value().is_string() ? std::to_string(*count) : entry.value().dump()));
  }
  return {};
}

/// Whether a word can only be the name of a pattern of the library, where there is no such file.
bool isPlainName(const std::string &word) { return word.find_first_of("/.:") == std::string::npos; }

class PlanReader {
public:
  PlanReader(WorkPlan &plan, std::string folder) : plan(plan), folder(std::move(folder)) {}

  Status read(const JsonPlace &top) {
    HEDDLE_TRY(top.object({
        {"patterns",
         [this](const JsonPlace &place) {
           return place.list([this](const JsonPlace &one) { return addPattern(one); });
         }},
        {"head_dims", [this](const JsonPlace &place) { return readHeadDims(place, plan.headDims); }},
        {"dtypes",
         [this](const JsonPlace &place) { return place.list([this](const JsonPlace &one) { return addDType(one); }); }},
        {"kinds",
         [this](const JsonPlace &place) { return place.list([this](const JsonPlace &one) { return addKind(one); }); }},
        {"precisions",
         [this](const JsonPlace &place) {
           return place.list([this](const JsonPlace &one) { return addPrecision(one); });
         }},
        {"archs", textsInto(plan.archs)},
        {"problems", [this](const JsonPlace &place) { return readProblems(place, plan.problems); }},
        {"gpus", textsInto(plan.gpus)},
    }));
    if (plan.patterns.empty())
      return Status::invalidArgument(top.where + ": expected \"patterns\", a list of files");
    if (plan.headDims.empty())
      plan.headDims = {{64, 64}, {128, 128}};
    if (plan.dtypes.empty())
      plan.dtypes = {kDefaultDType};
    if (plan.kinds.empty())
      plan.kinds = {Kind()};
    return checkPrecisions(top.where);
  }

private:
  Status addPattern(const JsonPlace &place) {
    PlanPattern &pattern = plan.patterns.emplace_back();
    if (place.value.is_string())
      HEDDLE_TRY(textInto(pattern.file)(place));
    else
      HEDDLE_TRY(place.object({{"file", textInto(pattern.file)},
                               {"pattern", textInto(pattern.pattern)},
                               {"name", textInto(pattern.name)},
                               {"set", [&](const JsonPlace &at) { return readSizes(at, pattern.sizes); }},
                               {"gradients_of", textsInto(pattern.gradientsOf)},
                               {"head_dims", [&](const JsonPlace &at) { return readHeadDims(at, pattern.headDims); }},
                               {"problems", [&](const JsonPlace &at) { return readProblems(at, pattern.problems); }}}));
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

  static Status readHeadDims(const JsonPlace &place, std::vector<PlanHeadDims> &list) {
    return place.list([&](const JsonPlace &one) { return addHeadDims(one, list); });
  }

  static Status addHeadDims(const JsonPlace &place, std::vector<PlanHeadDims> &list) {
    PlanHeadDims &dims = list.emplace_back();
    if (!place.value.is_object()) {
      HEDDLE_TRY(countInto(dims.head)(place));
      dims.value = dims.head;
      return {};
    }
    dims = {0, 0};
    HEDDLE_TRY(place.object({{"head", countInto(dims.head)}, {"value", countInto(dims.value)}}));
    return dims.head && dims.value ? Status() : place.expected("\"head\" and \"value\"");
  }

  Status addDType(const JsonPlace &place) {
    std::string name;
    HEDDLE_TRY(textInto(name)(place));
    const std::optional<DType> dtype = findElement(&ElementTraits::name, name, &ElementTraits::isComputed);
    if (!dtype)
      return place.expected(elementList(&ElementTraits::isComputed));
    plan.dtypes.push_back(*dtype);
    return {};
  }

  Status addKind(const JsonPlace &place) {
    std::string name, known;
    HEDDLE_TRY(textInto(name)(place));
    for (const Kind &kind : Kind::all()) {
      known += (known.empty() ? "" : ", ") + kind.name();
      if (kind.name() == name) {
        plan.kinds.push_back(kind);
        return {};
      }
    }
    return place.expected("one of " + known);
  }

  Status addPrecision(const JsonPlace &place) {
    std::string name, known;
    HEDDLE_TRY(textInto(name)(place));
    for (Precision precision : kPrecisions)
      known += (known.empty() ? "" : ", ") + std::string(precisionName(precision));
    const std::optional<Precision> precision = parsePrecision(name);
    if (!precision)
      return place.expected("one of " + known);
    plan.precisions.push_back(*precision);
    return {};
  }

  /// No type of the plan is passed over.
  Status checkPrecisions(const std::string &where) const {
    for (const Kind &kind : plan.kinds)
      for (DType dtype : plan.dtypes)
        if (plan.precisionsOf(kind, dtype).empty())
          return Status::invalidArgument(where + ": precisions: expected \"exact\" among them, which " + kind.name() +
                                         " of " + dtypeName(dtype) + " has alone");
    return {};
  }

  static Status readProblems(const JsonPlace &place, std::vector<PlanProblem> &list) {
    return place.list([&](const JsonPlace &one) { return addProblem(one, list); });
  }

  static JsonReader lengthsInto(LengthRange &lengths) {
    return [&lengths](const JsonPlace &place) -> Status {
      const std::optional<int64_t> each = place.count();
      const std::optional<LengthRange> range =
          LengthRange::parse(each                      ? std::to_string(*each)
                             : place.value.is_string() ? place.value.get<std::string>()
                                                       : "");
      if (!range)
        return place.expected("keys of each sequence, such as \"4k\" or \"512-32k\"");
      lengths = *range;
      return {};
    };
  }

  static JsonReader placesInto(KeyPlaces &places) {
    return [&places](const JsonPlace &place) -> Status {
      std::string text, known;
      HEDDLE_TRY(textInto(text)(place));
      for (KeyPlaces each : allKeyPlaces()) {
        known += (known.empty() ? "" : ", ") + std::string(keyPlacesName(each));
        if (text == keyPlacesName(each)) {
          places = each;
          return {};
        }
      }
      return place.expected("one of " + known);
    };
  }

  static Status addProblem(const JsonPlace &place, std::vector<PlanProblem> &list) {
    PlanProblem problem{1, 0, 0, 0, 0};
    ServedKeys &served = problem.served;
    int64_t pageSize = 0;
    HEDDLE_TRY(place.object({{"batch", countInto(problem.batch)},
                             {"heads", countInto(problem.heads)},
                             {"kv_heads", countInto(problem.kvHeads)},
                             {"seqlen", countInto(problem.seqlenQ)},
                             {"seqlen_k", countInto(problem.seqlenK)},
                             {"lengths", lengthsInto(served.lengths)},
                             {"keys", placesInto(served.layout.places)},
                             {"page_size", countInto(pageSize, 1, kMostKeysOfPage)}}));
    if (pageSize && !served.isGiven())
      return place.expected("\"lengths\" beside \"page_size\"");
    if (pageSize)
      served.layout.pageSize = pageSize;
    if (served.isGiven() && problem.seqlenK)
      return place.expected("\"lengths\" or \"seqlen_k\"");
    if (served.isGiven()) {
      problem.seqlenK = served.room();
      problem.seqlenQ = std::max<int64_t>(problem.seqlenQ, 1);
    }
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

/// At least as many as pack or sweep make of the plan.
double combinations(const WorkPlan &plan) {
  double count = 0;
  for (const PlanPattern &pattern : plan.patterns) {
    double kernels = 0;
    for (DType dtype : plan.dtypes)
      for (const Kind &kind : plan.kinds)
        kernels += double(plan.headDimsOf(pattern).size()) * double(plan.precisionsOf(kind, dtype).size());
    const double tunes = double(plan.problemsOf(pattern).size()) * std::max(1.0, double(plan.gpus.size()));
    count += kernels * std::max({1.0, tunes, double(plan.archs.size())});
  }
  return count;
}

} // namespace

Result<WorkPlan> WorkPlan::parse(const std::string &text, const std::string &label, const std::string &folder) {
  HEDDLE_ASSIGN(const OrderedJson json, parseJson(text, label));
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
