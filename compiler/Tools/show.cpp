// Draws which pairs or tiles a pattern keeps, as SVG or in the terminal.
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Tools/Messages.h"
#include "compiler/Tools/Options.h"
#include "compiler/Tools/Output.h"
#include "compiler/Tools/Verb.h"
#include "compiler/Views/Picture.h"
#include "runtime/Core/Positions.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {
namespace {

struct ShowOptions {
  PatternOptions pattern;
  SizeOptions sizes;
  int64_t seqlen = 0, seqlenK = -1, heads = 0, blockM = 128, blockN = 128, maxCells = 0;
  OriginOption origin;
  std::optional<int64_t> head;
  std::string format, output = "-";
};

/// What was asked for, else what the name of the file says, else text.
bool isSvg(const ShowOptions &options) {
  return options.format.empty() ? endingOf(options.output) == ".svg" : options.format == "svg";
}

Status checkFormat(const ShowOptions &options) {
  std::vector<std::string> endings;
  if (options.format != "text")
    endings.push_back(".svg");
  if (options.format != "svg")
    endings.push_back(".txt");
  return checkEnding("-o", options.output, endings, kFromSvg);
}

Result<views::PictureRequest> requestOf(const ShowOptions &options, const PatternFile &file) {
  views::PictureRequest request;
  std::vector<MadeOperand> made;
  ProblemShape shape;
  shape.heads = shape.kvHeads = options.heads ? options.heads : static_cast<int64_t>(file.analysis().variants.size());
  shape.seqlenQ = options.seqlen;
  shape.seqlenK = options.seqlenK >= 0 ? options.seqlenK : options.seqlen;
  shape.qOrigin = options.origin.position.value_or(0);
  HEDDLE_ASSIGN(shape.parameters, file.bindParameters(options.sizes.assignments));
  HEDDLE_TRY(checkShape(file, shape));
  HEDDLE_TRY(bindOperands(file, {options.sizes.operands, {}, OperandSources::Missing::makeForMasks}, shape, &made));
  for (const MadeOperand &tensor : made)
    request.invented.push_back(tensor.name + " (" + tensor.reader + ")");
  if (options.head && *options.head >= shape.heads)
    return Status::invalidArgument("expected head < " + std::to_string(shape.heads) + ", the number of heads, got " +
                                   std::to_string(*options.head));
  request.sizes = sizesOf(file, shape);
  request.operands = shape.operands;
  request.head = options.head;
  request.tile = {options.blockM, options.blockN};
  bool svg = isSvg(options);
  request.maxColumns = options.maxCells ? options.maxCells : svg ? 128 : 72;
  bool fitsText = shape.seqlenQ <= 36 && shape.seqlenK <= 36;
  // a character is twice as high as wide
  request.maxRows = svg || fitsText || options.maxCells ? request.maxColumns : 36;
  return request;
}

int runShow(const ShowOptions &options) {
  std::vector<std::string> uses = options.sizes.files();
  uses.push_back(options.pattern.path());
  if (Status output = checkOutput("-o", options.output, uses); !output.isOk())
    return fail(output);
  if (Status format = checkFormat(options); !format.isOk())
    return failUsage(format);
  const auto [file, exitCode] = loadForCall(options.pattern, options.origin, options.sizes);
  if (!file)
    return exitCode;
  Result<views::PictureRequest> request = requestOf(options, *file);
  if (!request)
    return fail(request.status());
  ProgressLine progress;
  request->progress = [&](double share) { progress.show(share, "rows of cells"); };
  Result<views::Picture> picture = views::draw(*file, *request);
  progress.finish();
  if (!picture)
    return fail(picture.status());
  return finish(writeArtifact(options.output, isSvg(options) ? views::svg(*picture) : views::blockText(*picture)));
}

} // namespace

Action addShow(CLI::App &command) {
  auto options = std::make_shared<ShowOptions>();
  options->pattern.add(command);
  CLI::Range lengths(int64_t(1), kFarthestPosition), counts(int64_t(1), int64_t(1) << 20);
  addCount(command, "--seqlen", options->seqlen, "N", "Queries, and keys unless --seqlen-k is given")
      ->required()
      ->check(lengths);
  addCount(command, "--seqlen-k", options->seqlenK, "M", "Keys [as --seqlen]")->check(lengths);
  addCount(command, "--heads", options->heads, "H", "Query heads [one for each head group]")->check(counts);
  addCount(command, "--head", options->head, "h", "Show this head only")
      ->check(CLI::Range(int64_t(0), int64_t(1) << 20));
  addCount(command, "--block-m", options->blockM, "M", "Queries of a tile")->check(counts)->capture_default_str();
  addCount(command, "--block-n", options->blockN, "N", "Keys of a tile")->check(counts)->capture_default_str();
  options->sizes.add(command);
  options->origin.add(command);
  addValue(command, "--format", options->format, "FORMAT", "svg or text [svg for a FILE.svg, else text]")
      ->check(CLI::IsMember({"svg", "text"}));
  addCount(command, "--max-cells", options->maxCells, "N",
           "Most cells on each side; up to as many tokens, every pair is shown [128; text: 72 x 36]")
      ->check(CLI::Range(int64_t(1), int64_t(1024)));
  addValue(command, "-o,--output", options->output, "FILE", "Where the picture goes; - is standard output")
      ->capture_default_str();
  return [options] { return runShow(*options); };
}

} // namespace heddle::cli
