// Counts the pairs that only one of two patterns keeps for given sizes, and draws them. Needs no GPU.
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Tools/CountJson.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"
#include "compiler/Views/PatternDiff.h"
#include "runtime/Core/CountText.h"
#include "runtime/Core/Positions.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

struct DiffOptions {
  std::string files[2], names[2], svg;
  SizeOptions sizes;
  std::vector<std::string> ownSizes[2];
  int64_t seqlen = 0, seqlenK = -1, heads = 0, maxCells = 0;
  OriginOption origin;
  std::optional<int64_t> head, limit;
  bool json = false, exitCode = false;
};

/// One side of the comparison, loaded.
struct Side {
  std::unique_ptr<PatternFile> file;
  attn::ProblemSizes sizes;
  Operands operands;
  std::vector<MadeOperand> invented; ///< tensors that nobody gave
};

bool hasArgument(const PatternFile &file, const std::string &assignment) {
  attn::PatternOp pattern = file.pattern();
  const std::string name = assignment.substr(0, assignment.find('='));
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (pattern.getParameterName(i) == name)
      return true;
  return false;
}

/// --set and --operand go to each pattern that has the argument, and to both if none has, which then say so.
std::vector<std::string> assignmentsOf(const std::vector<std::string> &given, const std::vector<Side> &sides,
                                       size_t index) {
  std::vector<std::string> result;
  for (const std::string &assignment : given)
    if (hasArgument(*sides[index].file, assignment) || !hasArgument(*sides[1 - index].file, assignment))
      result.push_back(assignment);
  return result;
}

Result<std::vector<Side>> loadSides(const DiffOptions &options) {
  std::vector<Side> sides(2);
  for (size_t i = 0; i < 2; ++i) {
    HEDDLE_ASSIGN(sides[i].file, (PatternOptions{options.files[i], options.names[i]}.load()));
    printNotes(*sides[i].file);
  }
  return sides;
}

std::vector<std::string> sizesFor(const DiffOptions &options, const std::vector<Side> &sides, size_t index) {
  std::vector<std::string> sizes = assignmentsOf(options.sizes.assignments, sides, index);
  sizes.insert(sizes.end(), options.ownSizes[index].begin(), options.ownSizes[index].end());
  return sizes;
}

Status checkNames(const DiffOptions &options, const std::vector<Side> &sides) {
  for (size_t i = 0; i < 2; ++i)
    HEDDLE_TRY((SizeOptions{sizesFor(options, sides, i), assignmentsOf(options.sizes.operands, sides, i)}.check(
        *sides[i].file)));
  return {};
}

Status bindSides(const DiffOptions &options, std::vector<Side> &sides) {
  size_t groups = 1;
  for (const Side &side : sides)
    groups = std::max(groups, side.file->analysis().variants.size());
  for (size_t i = 0; i < 2; ++i) {
    ProblemShape shape;
    shape.heads = shape.kvHeads = options.heads ? options.heads : static_cast<int64_t>(groups);
    shape.seqlenQ = options.seqlen;
    shape.seqlenK = options.seqlenK >= 0 ? options.seqlenK : options.seqlen;
    shape.qOrigin = options.origin.position.value_or(0);
    HEDDLE_ASSIGN(shape.parameters, sides[i].file->bindParameters(sizesFor(options, sides, i)));
    HEDDLE_TRY(checkShape(*sides[i].file, shape));
    HEDDLE_TRY(bindOperands(
        *sides[i].file, {assignmentsOf(options.sizes.operands, sides, i), {}, OperandSources::Missing::makeForMasks},
        shape, &sides[i].invented));
    sides[i].sizes = sizesOf(*sides[i].file, shape);
    sides[i].sizes.mostEvaluations = options.limit.value_or(sides[i].sizes.mostEvaluations);
    sides[i].operands = shape.operands;
  }
  if (options.head && *options.head >= sides[0].sizes.heads)
    return Status::invalidArgument("expected head < " + std::to_string(sides[0].sizes.heads) +
                                   ", the number of heads, got " + std::to_string(*options.head));
  return {};
}

Json sideJson(const Side &side) {
  Json sizes = Json::object();
  attn::PatternOp pattern = side.file->pattern();
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    sizes[pattern.getParameterName(i).str()] = side.sizes.parameters[i];
  Json invented = Json::array();
  for (const MadeOperand &tensor : side.invented)
    invented.push_back(tensor.name);
  return {
      {"file", side.file->path()}, {"pattern", pattern.getSymName().str()}, {"sizes", sizes}, {"invented", invented}};
}

Json diffJson(const std::vector<Side> &sides, const views::DiffCounts &counts) {
  const attn::ProblemSizes &sizes = sides[0].sizes;
  return {{"a", sideJson(sides[0])},
          {"b", sideJson(sides[1])},
          {"heads", sizes.heads},
          {"seqlen_q", sizes.seqlenQ},
          {"seqlen_k", sizes.seqlenK},
          {"equal", counts.isEqual()},
          {"both", countJson(counts.both)},
          {"only_a", countJson(counts.onlyFirst)},
          {"only_b", countJson(counts.onlySecond)},
          {"unequally_often", countJson(counts.unequal)},
          {"closed_form", counts.isClosedForm}};
}

std::string diffText(const std::vector<Side> &sides, const views::DiffCounts &counts) {
  std::string text;
  for (size_t i = 0; i < 2; ++i)
    text += std::string(i ? "b" : "a") + "  " + views::titleOf(*sides[i].file, sides[i].sizes) + "  " +
            sides[i].file->path() + "\n";
  text += "kept by both     " + counted(counts.both, "pair") + "\n";
  text += "only in a        " + grouped(counts.onlyFirst) + "\n";
  text += "only in b        " + grouped(counts.onlySecond) + "\n";
  text += "unequally often  " + grouped(counts.unequal) + "\n";
  const attn::ProblemSizes &sizes = sides[0].sizes;
  return text + "in " + counted(sizes.heads, "head") + " of " + counted(sizes.seqlenQ, "query") + " and " +
         counted(sizes.seqlenK, "key") + ", counted " + (counts.isClosedForm ? "in closed form" : "pair by pair") +
         "\n";
}

/// Those of both sides, each with its side.
std::vector<std::string> inventedOf(const std::vector<Side> &sides) {
  std::vector<std::string> names;
  for (size_t i = 0; i < 2; ++i)
    for (const MadeOperand &tensor : sides[i].invented)
      names.push_back(tensor.name + " (" + tensor.reader + (i ? " of b)" : " of a)"));
  return names;
}

views::PictureRequest pictureRequest(const DiffOptions &options, const std::vector<Side> &sides, bool svg) {
  views::PictureRequest request;
  const attn::ProblemSizes &sizes = request.sizes = sides[0].sizes;
  request.invented = inventedOf(sides);
  request.head = options.head;
  request.maxColumns = options.maxCells ? options.maxCells : svg ? 128 : 72;
  bool fitsText = sizes.seqlenQ <= 36 && sizes.seqlenK <= 36;
  request.maxRows = svg || fitsText || options.maxCells ? request.maxColumns : 36;
  return request;
}

/// Shows how far counts and pictures are, and what bounds them.
class Effort {
public:
  explicit Effort(const DiffOptions &options) {
    pairs.mostPairs = options.limit.value_or(pairs.mostPairs);
    pairs.progress = [this](double share) { progress.show(share, "rows and pairs; --limit bounds them"); };
  }
  ~Effort() { progress.finish(); }

  views::PairEffort pairs;

private:
  ProgressLine progress;
};

Result<views::DiffCounts> count(const DiffOptions &options, const views::DiffSide &first,
                                const views::DiffSide &second) {
  Effort effort(options);
  return views::countDifference(first, second, effort.pairs);
}

Result<views::Picture> draw(const DiffOptions &options, const std::vector<Side> &sides, const views::DiffSide &first,
                            const views::DiffSide &second, bool svg) {
  Effort effort(options);
  views::PictureRequest request = pictureRequest(options, sides, svg);
  request.progress = effort.pairs.progress;
  return views::drawDifference(first, second, request, effort.pairs);
}

/// The text unless JSON or nothing but counts is to be printed, and the file if one is wanted. What has too many pairs
/// is left out, and that is said.
Status drawPictures(const DiffOptions &options, const std::vector<Side> &sides, const views::DiffSide &first,
                    const views::DiffSide &second) {
  for (bool svg : {false, true}) {
    if (svg ? options.svg.empty() : options.json || isQuiet())
      continue;
    Result<views::Picture> picture = draw(options, sides, first, second, svg);
    if (picture)
      HEDDLE_TRY(writeArtifact(svg ? options.svg : "-", svg ? views::svg(*picture) : views::blockText(*picture)));
    else if (picture.status().code() != StatusCode::unsupported)
      return picture.status();
    else if (svg)
      note("'" + options.svg + "' is not written: " + picture.status().message());
    else
      std::cout << "not drawn: " << picture.status().message() << '\n';
  }
  return {};
}

int runDiff(const DiffOptions &options) {
  std::vector<std::string> uses = options.sizes.files();
  for (size_t i = 0; i < 2; ++i)
    uses.push_back(PatternOptions{options.files[i], options.names[i]}.path());
  if (Status output = checkOutput("--svg", options.svg, uses); !output.isOk())
    return fail(output);
  if (Status name = checkEnding("--svg", options.svg, {".svg"}, kFromSvg); !name.isOk())
    return failUsage(name);
  auto sides = loadSides(options);
  if (!sides)
    return failNames(sides.status());
  if (Status origin = options.origin.check({(*sides)[0].file.get(), (*sides)[1].file.get()}); !origin.isOk())
    return failUsage(origin);
  if (Status names = checkNames(options, *sides); !names.isOk())
    return failUsage(names);
  if (Status bound = bindSides(options, *sides); !bound.isOk())
    return fail(bound);
  const views::DiffSide first{*(*sides)[0].file, (*sides)[0].sizes, (*sides)[0].operands};
  const views::DiffSide second{*(*sides)[1].file, (*sides)[1].sizes, (*sides)[1].operands};
  auto counts = count(options, first, second);
  if (!counts)
    return fail(counts.status());
  if (options.json)
    printJson(diffJson(*sides, *counts));
  else
    std::cout << diffText(*sides, *counts);
  if (Status drawn = drawPictures(options, *sides, first, second); !drawn.isOk())
    return fail(drawn);
  return options.exitCode && !counts->isEqual() ? BadInput : Ok;
}

} // namespace

Action addDiff(CLI::App &command) {
  auto options = std::make_shared<DiffOptions>();
  CLI::Range lengths(int64_t(1), kFarthestPosition), counts(int64_t(1), int64_t(1) << 20);
  addValue(command, "A", options->files[0], kPatternType,
           "Pattern: a file (.mlir) or a name of the library ('heddle help patterns')")
      ->required();
  addValue(command, "B", options->files[1], kPatternType, "Pattern to compare it with")->required();
  addValue(command, "--pattern-a", options->names[0], "NAME", "Which attn.pattern of A");
  addValue(command, "--pattern-b", options->names[1], "NAME", "Which attn.pattern of B");
  addCount(command, "--seqlen", options->seqlen, "N", "Queries, and keys unless --seqlen-k is given")
      ->required()
      ->check(lengths);
  addCount(command, "--seqlen-k", options->seqlenK, "M", "Keys [as --seqlen]")->check(lengths);
  addCount(command, "--heads", options->heads, "H", "Query heads [one for each head group]")->check(counts);
  addCount(command, "--head", options->head, "h", "Draw this head only")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 20));
  options->sizes.add(command);
  addValues(command, "--set-a", options->ownSizes[0], "NAME=VALUE", "Like --set, for A alone");
  addValues(command, "--set-b", options->ownSizes[1], "NAME=VALUE", "Like --set, for B alone");
  options->origin.add(command);
  addCount(command, "--max-cells", options->maxCells, "N",
           "Most cells on each side; up to as many tokens, every pair is shown [128; text: 72 x 36]")
      ->check(CLI::Range(int64_t(1), int64_t(1024)));
  addCount(command, "--limit", options->limit, "N",
           "Counts and pictures stop at so many evaluations of a closed form, or pairs compared one by one [2^19 "
           "evaluations, 2^31 pairs]")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40));
  addValue(command, "--svg", options->svg, "FILE", "Write a picture to this file too; -q leaves out that of the text");
  command.add_flag("--exit-code", options->exitCode, "Exit with 1 if the patterns differ");
  addJsonOption(command, options->json);
  return [options] { return runDiff(*options); };
}

} // namespace heddle::cli
