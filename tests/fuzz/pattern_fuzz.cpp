//===- pattern_fuzz.cpp - hostile pattern files -----------------------------===//
// From text to CUDA text on every skeleton, without NVRTC, and to counts of tiles and pairs. Nothing may crash or hang,
// and what is emitted consists of the words of the emitter alone: no name, string or attribute of the author gets into
// it.
//===----------------------------------------------------------------------===//
#include "codegen/Skeletons/Shared/EmbeddedSources.h"
#include "codegen/Skeletons/Shared/Skeleton.h"
#include "codegen/Nvrtc/KernelSource.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Session/PreparedPattern.h"
#include "dialect/Geometry/TileVisitor.h"
#include "tests/fuzz/Fuzz.h"
#include "support/FirstSource.h"
#include "support/ServedShapes.h"

#include <algorithm>

using namespace heddle;

namespace {

/// Words of the functions and of the wrapper, but for those that end in a number.
const char *const kWords[] = {"static",
                              "__device__",
                              "__forceinline__",
                              "void",
                              "bool",
                              "int",
                              "int32_t",
                              "uint32_t",
                              "float",
                              "size_t",
                              "struct",
                              "template",
                              "class",
                              "Columns",
                              "below",
                              "if",
                              "else",
                              "for",
                              "return",
                              "true",
                              "false",
                              "const",
                              "constexpr",
                              "pragma",
                              "unroll",
                              "out",
                              "pattern_variant",
                              "pattern_query_rate",
                              "pattern_key_rate",
                              "pattern_key_residue",
                              "pattern_next_range",
                              "pattern_keep",
                              "pattern_kept_columns",
                              "pattern_band_columns",
                              "hasBandColumns",
                              "bandColumns",
                              "pattern_document_count",
                              "pattern_document_row",
                              "documentCount",
                              "documentRow",
                              "document",
                              "pattern_score",
                              "pattern_score_document",
                              "scoreDocument",
                              "score_document",
                              "batch",
                              "head",
                              "heads",
                              "seqlen_q",
                              "seqlen_k",
                              "q_origin",
                              "k_origin",
                              "seqlenQ",
                              "seqlenK",
                              "qOrigin",
                              "kOrigin",
                              "param",
                              "variant",
                              "branch",
                              "tile_first",
                              "tile_last",
                              "tileFirst",
                              "tileLast",
                              "block_n",
                              "blockN",
                              "from",
                              "q_position",
                              "k_position",
                              "first_position",
                              "qPosition",
                              "kPosition",
                              "firstPosition",
                              "score",
                              "PatternContext",
                              "KeyRange",
                              "Pattern",
                              "using",
                              "Context",
                              "Range",
                              "begin",
                              "end",
                              "fullBegin",
                              "fullEnd",
                              "reach",
                              "c",
                              "kVariantCount",
                              "kBranchCount",
                              "kParamCount",
                              "kHasScore",
                              "kHasScoreDocument",
                              "kHasKeptColumns",
                              "queryRate",
                              "keyRate",
                              "keyResidue",
                              "nextRange",
                              "keep",
                              "keptColumns",
                              "heddle",
                              "ptx",
                              "exp2Approx",
                              "reciprocalApprox",
                              "largest_of_warp",
                              "random_cells_next",
                              "random_cells_has",
                              "strided_cells_next",
                              "near_cells_next",
                              "last_not_above",
                              "pattern_band_columns",
                              "bandColumns",
                              "csr_cells_next",
                              "csr_cells_has",
                              "csr_cells_length",
                              "csr_cells_entry",
                              "__clz",
                              "random_cells_length",
                              "random_cells_entry",
                              "kHasSink",
                              "sink",
                              "pattern_sink",
                              "kOperandCount",
                              "bindOperands",
                              "operands",
                              "static_cast",
                              "kAsksTogether",
                              "int8_t",
                              "uint8_t",
                              "int16_t",
                              "uint16_t",
                              "int64_t",
                              "uint64_t",
                              "ptrdiff_t",
                              "__int_as_float",
                              "__float_as_int",
                              "fabsf",
                              "ceilf",
                              "cosf",
                              "erff",
                              "expf",
                              "exp2f",
                              "expm1f",
                              "floorf",
                              "fmaf",
                              "logf",
                              "log1pf",
                              "log2f",
                              "powf",
                              "rsqrtf",
                              "sinf",
                              "sqrtf",
                              "tanhf",
                              "INFINITY",
                              "NAN",
                              "f",
                              "e",
                              "E"};

bool isNumbered(std::string_view word, std::string_view stem) {
  return word.size() > stem.size() && word.substr(0, stem.size()) == stem &&
         std::all_of(word.begin() + stem.size(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool isKnown(std::string_view word) {
  // v12, of loops i3, j4
  const bool isVariable = word[0] >= 'a' && word[0] <= 'z' && isNumbered(word, word.substr(0, 1));
  return isVariable || isNumbered(word, "param_") || isNumbered(word, "operand_") || isNumbered(word, "operand") ||
         isNumbered(word, "label") || std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Without the includes of embedded device files in front.
std::string withoutIncludes(std::string text) {
  for (bool isInclude = true; isInclude;) {
    isInclude = false;
    for (const EmbeddedFile &file : skeletonSources()) {
      const std::string line = "#include \"" + std::string(file.name) + "\"\n";
      if (text.compare(0, line.size(), line) == 0) {
        text.erase(0, line.size());
        isInclude = true;
      }
    }
  }
  return text;
}

/// Everything between the traits and the skeleton: the only part that a pattern has a say in.
void requireOwnWords(const std::string &text) {
  for (size_t i = 0; i < text.size();) {
    if (isDigit(text[i])) { // 1.0e+02f
      while (i < text.size() && (isDigit(text[i]) || isLetter(text[i]) || text[i] == '.'))
        ++i;
    } else if (isLetter(text[i])) {
      size_t end = i;
      while (end < text.size() && (isLetter(text[end]) || isDigit(text[end])))
        ++end;
      FUZZ_REQUIRE(isKnown(std::string_view(text).substr(i, end - i)), "a foreign word: " + text.substr(i, end - i));
      i = end;
    } else {
      const bool isPlain = text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~');
      FUZZ_REQUIRE(isPlain && text[i] != '"' && text[i] != '\\' && text[i] != '\'',
                   "a foreign character in the functions");
      ++i;
    }
  }
}

/// The three comments in front, the second of which names the pattern.
void requirePlainHead(const std::string &source) {
  const std::string head = source.substr(0, source.find("#include"));
  FUZZ_REQUIRE(std::count(head.begin(), head.end(), '\n') == 3, "a comment of more than a line");
  for (char c : head)
    FUZZ_REQUIRE(c == '\n' || isLetter(c) || isDigit(c) ||
                     std::string_view("/ .:=,-()[]").find(c) != std::string_view::npos,
                 "a foreign character in the head");
}

void emitFor(const PreparedPattern &prepared, const KernelShape &shape) {
  if (!configFor(prepared, shape, ""))
    return;
  Result<KernelSource> source = test::firstSource(prepared, shape, "");
  FUZZ_REQUIRE(source.isOk(), "the default is infeasible: " + source.status().message());
  requirePlainHead(source->text);
  if (prepared.passFunctions.empty() || !configFor(prepared, shape, "chained_mib=32"))
    return;
  Result<std::vector<KernelSource>> passes = variantSources(prepared, shape, "chained_mib=32");
  FUZZ_REQUIRE(passes.isOk() && passes->size() == prepared.passFunctions.size(), "a source for each pass");
  for (const KernelSource &pass : *passes)
    requirePlainHead(pass.text);
}

/// What single tiles visit of a short call, and its pairs, with tensors made for masks.
void visitShort(const PatternFile &file, const std::vector<int64_t> &parameters) {
  ProblemShape shape;
  shape.heads = shape.kvHeads = 3;
  shape.seqlenQ = 200, shape.seqlenK = 207;
  shape.parameters = parameters;
  if (!bindOperands(file, {{}, {}, OperandSources::Missing::makeForMasks}, shape).isOk())
    return;
  const attn::ProblemSizes sizes = sizesOf(file, shape);
  const attn::VariantRanges &ranges = file.analysis().variants[attn::variantOf(file.analysis(), sizes, 1)].forward;
  for (unsigned branch = 0; branch < ranges.branches.size(); ++branch) {
    const attn::TileVisit visit =
        attn::TileVisitor(ranges, branch, attn::Direction::Forward, sizes).visit(1, {0, 0, 100}, 16);
    for (const attn::TileRun &full : visit.full)
      FUZZ_REQUIRE(
          std::any_of(visit.visited.begin(), visit.visited.end(),
                      [&](const attn::TileRun &run) { return run.begin <= full.begin && full.end <= run.end; }),
          "a full tile that is not visited");
  }
  if (auto pairs = attn::countPairs(file.analysis(), sizes))
    FUZZ_REQUIRE(*pairs >= 0, "a negative number of pairs");
}

/// What `heddle explain` counts, at two lengths; of the long one long tiles, since sanitizers make an evaluation some
/// fifteen times as long.
void count(const PatternFile &file) {
  Result<std::vector<int64_t>> parameters = file.bindParameters({});
  if (!parameters)
    return;
  visitShort(file, *parameters);
  for (auto [seqlen, rows] : {std::pair<int64_t, int64_t>(200, 64), {1 << 17, 512}}) {
    attn::ProblemSizes sizes{3, seqlen, seqlen + 7, 0, 0, *parameters};
    const attn::TileCounts tiles = attn::countTiles(file.analysis(), sizes, {rows, 128}, attn::Direction::Forward);
    FUZZ_REQUIRE(tiles.full >= 0 && tiles.full <= tiles.visited, "more full tiles than visited ones");
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto file = PatternFile::parse(std::string(reinterpret_cast<const char *>(data), size), "fuzz.mlir");
  if (!file)
    return 0;
  Result<PreparedPattern> prepared = preparePattern(**file);
  if (!prepared)
    return 0;
  count(**file);
  std::vector<PatternText> texts = prepared->passFunctions;
  texts.push_back(prepared->functions);
  for (const PatternText &text : texts) {
    requireOwnWords(withoutIncludes(text.usual));
    requireOwnWords(withoutIncludes(text.exact));
  }
  emitFor(*prepared, KernelShape());
  emitFor(*prepared, test::shapeServedBy("sm90_forward"));
  return 0;
}
