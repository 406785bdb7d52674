// Owns the text of PatternContext, KeyRange and Pattern (docs/architecture.md, section 2). A
// skeleton uses nothing else of a pattern. Depends on the counts in PatternInfo only.
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Emit/SourceWriter.h"
#include <algorithm>

namespace heddle {
namespace {

// Where a generated function's argument comes from inside a method of Pattern.
std::string fieldOf(const std::string &argument) {
  static const std::vector<std::pair<std::string, std::string>> fields = {
      {"batch", "c.batch"},
      {"head", "c.head"},
      {"heads", "c.heads"},
      {"seqlen_q", "c.seqlenQ"},
      {"seqlen_k", "c.seqlenK"},
      {"q_origin", "c.qOrigin"},
      {"k_origin", "c.kOrigin"},
      {"tile_first", "tileFirst"},
      {"tile_last", "tileLast"},
      {"block_n", "blockN"},
      {"q_position", "qPosition"},
      {"k_position", "kPosition"},
      {"first_position", "firstPosition"},
      {"block_m", "blockM"},
      {kScoreDocument, "document"},
  };
  for (const auto &[name, field] : fields)
    if (name == argument)
      return field;
  const std::string parameter = "param_", operand = "operand_";
  if (argument.rfind(parameter, 0) == 0)
    return "c.param[" + argument.substr(parameter.size()) + "]";
  if (argument.rfind(operand, 0) == 0)
    return "c.operand" + argument.substr(operand.size());
  return argument;
}

std::string methodSignature(const PatternFunction &function) {
  std::vector<std::string> parameters;
  if (function.takesContext)
    parameters.push_back("const PatternContext &c");
  for (const char *argument : function.extra())
    if (std::string(argument) != "out")
      parameters.push_back((std::string(argument) == "score" ? "float " : "int ") + fieldOf(argument));
  return "static __device__ __forceinline__ " + std::string(function.methodResult) + " " +
         SourceWriter::call(function.method, parameters);
}

void writeMethod(SourceWriter &writer, const PatternFunction &function, const PatternInfo &info) {
  std::vector<std::string> values;
  for (const std::string &argument : argumentNames(function, info))
    values.push_back(fieldOf(argument));
  std::string call = SourceWriter::call(function.symbol, values);
  auto body = writer.function(methodSignature(function));
  if (function.result != PatternResult::none)
    return writer.line("return " + call + ";");
  writer.line("int32_t out[5];");
  writer.line(call + ";");
  writer.line("return KeyRange{out[0], out[1], out[2], out[3], out[4]};");
}

void writeWords(SourceWriter &writer, const PatternFunction &function, const PatternInfo &info) {
  std::vector<std::string> values;
  for (const std::string &argument : argumentNames(function, info))
    values.push_back(fieldOf(argument));
  auto body = writer.function(methodSignature(function));
  writer.line("return " + SourceWriter::call(function.symbol + std::string("<Columns>"), values) + ";");
}

void writeAll(SourceWriter &writer, const PatternInfo &info, FunctionPresence presence) {
  for (const PatternFunction &function : patternFunctions())
    if (function.presence == presence)
      writeMethod(writer, function, info);
}

// A skeleton asks KernelTraits::kTilesAreWhole first, so a pattern without a band says nothing of it.
void writeBandColumns(SourceWriter &writer, const PatternInfo &info, const PatternFunction &function) {
  writer.line("template <class Columns>");
  writeWords(writer, function, info);
}

// A skeleton asks kHasKeptColumns first, so the method of a pattern without words needs no body.
void writeKeptColumns(SourceWriter &writer, const PatternInfo &info, const PatternFunction &function,
                      const std::vector<bool> &branches) {
  std::vector<std::string> answers;
  for (bool hasWords : branches)
    answers.push_back(hasWords ? "true" : "false");
  writer.line("static constexpr bool kHasKeptColumns[] = {" + joinComma(answers) + "};");
  writer.line("template <class Columns>");
  if (std::find(branches.begin(), branches.end(), true) == branches.end())
    return writer.line(methodSignature(function) + ";");
  writeWords(writer, function, info);
}

// A skeleton asks only where configurations have tiles of documents (Skeletons/Forward/work_items.cuh), so a pattern without
// them says nothing of them.
void writeDocuments(SourceWriter &writer, const PatternInfo &info) {
  writeMethod(writer, patternFunction(Generated::DocumentCount), info);
  writeMethod(writer, patternFunction(Generated::DocumentRow), info);
}

// A skeleton asks once for a query, and passes it on with its pairs.
void writeScoreDocument(SourceWriter &writer, const PatternInfo &info, bool hasScoreDocument) {
  const PatternFunction &function = patternFunction(Generated::ScoreDocument);
  writer.constant("kHasScoreDocument", hasScoreDocument);
  if (hasScoreDocument)
    return writeMethod(writer, function, info);
  auto body = writer.function(methodSignature(function));
  writer.line("return 0;");
}

// A function that a pattern may lack: `flag` says whether it has it. Without it the method exists all the same, because
// device code names it, and gives `otherwise`.
struct OptionalMethod {
  const char *flag;
  bool isPresent;
  Generated function;
  const char *otherwise;
};

void writeOptional(SourceWriter &writer, const OptionalMethod &optional, const PatternInfo &info) {
  const PatternFunction &function = patternFunction(optional.function);
  writer.constant(optional.flag, optional.isPresent);
  if (optional.isPresent)
    return writeMethod(writer, function, info);
  auto body = writer.function(methodSignature(function));
  writer.line(std::string("return ") + optional.otherwise + ";");
}

// Backward passes alone have these lines.
void writeGradients(SourceWriter &writer, const PatternInfo &info, bool hasScoreGradient) {
  writeOptional(writer, {"kHasScoreGradient", hasScoreGradient, Generated::ScoreGradient, "1.0f"}, info);
  writer.constant("kIsDetached", info.isDetached);
}

// As the functions take them: 16-bit floats are bits, 64-bit integers two words each.
std::string pointerType(DType element) { return std::string("const ") + traitsOf(element).loadedAs + " *"; }

std::string operandField(const PatternOperand &operand) { return "operand" + std::to_string(operand.argument); }

// Device code asks for kOperandCount by way of Skeletons/Shared/pattern_operands.cuh, so that a pattern without tensors says
// nothing of them.
void writeOperands(SourceWriter &writer, const PatternInfo &info) {
  if (info.operands.empty())
    return;
  writer.constant("kOperandCount", static_cast<int>(info.operands.size()));
  auto body = writer.function(
      "static __device__ __forceinline__ void bindOperands(PatternContext &c, const void *const *operands)");
  for (size_t i = 0; i < info.operands.size(); ++i)
    writer.line("c." + operandField(info.operands[i]) + " = static_cast<" + pointerType(info.operands[i].element) +
                ">(operands[" + std::to_string(i) + "]);");
}

// Device code picks the arguments that a kernel is asked for.
void writeArgumentGradients(SourceWriter &writer, const PatternInfo &info, const PatternTraits &traits) {
  writer.line("template <int Argument> struct ArgumentGradient;");
  for (const ArgumentGradientTraits &gradient : traits.argumentGradients) {
    writer.line("template <>");
    auto body = writer.structure("ArgumentGradient<" + std::to_string(gradient.argument) + ">");
    writer.constant("kReadsScore", gradient.derivativeReadsScore);
    writer.constant("kReadsQuery", gradient.placeReadsQuery);
    writer.constant("kReadsKey", gradient.placeReadsKey);
    for (Generated which : {Generated::ArgumentGradient, Generated::ArgumentPlace}) {
      const std::string symbol = symbolOf(which, gradient.argument);
      PatternFunction function = patternFunction(which);
      function.symbol = symbol.c_str();
      writeMethod(writer, function, info);
    }
  }
  writer.line();
}

// What rows of keys visit, under the names of Pattern with the axes exchanged.
void writeTransposed(SourceWriter &writer, const PatternInfo &info, const PatternTraits &traits) {
  auto transposed = writer.structure("TransposedPattern");
  writeAll(writer, info, FunctionPresence::WithKeyTiles);
  writeKeptColumns(writer, info, patternFunction(kKeyTiles.keptColumns), traits.transposedBranchesWithWords);
  if (traits.hasTransposedBandColumns)
    writeBandColumns(writer, info, patternFunction(kKeyTiles.bandColumns));
  transposed.end();
  writer.line();
}

// By which device code finds what stands around Pattern.
void writeNeighbours(SourceWriter &writer, bool isTransposed) {
  writer.line("using Context = PatternContext;");
  writer.line("using Range = KeyRange;");
  if (!isTransposed)
    return;
  writer.line("using Transposed = TransposedPattern;");
  writer.line("template <int Argument> using Gradient = ArgumentGradient<Argument>;");
}

} // namespace

std::string patternWrapperText(const PatternInfo &info, const PatternTraits &traits) {
  SourceWriter writer;
  auto context = writer.structure("PatternContext");
  writer.fields("int32_t", {"batch", "head", "heads", "seqlenQ", "seqlenK", "qOrigin", "kOrigin"});
  writer.fields("int32_t", {"param[" + std::to_string(std::max(info.paramCount, 1)) + "]"});
  for (const PatternOperand &operand : info.operands)
    writer.fields(pointerType(operand.element), {operandField(operand)});
  context.end();
  writer.line();
  auto range = writer.structure("KeyRange");
  writer.fields("int32_t", {"begin", "end", "fullBegin", "fullEnd", "reach"});
  range.end();
  writer.line();
  if (traits.isTransposed) {
    writeArgumentGradients(writer, info, traits);
    writeTransposed(writer, info, traits);
  }
  auto pattern = writer.structure("Pattern");
  writeNeighbours(writer, traits.isTransposed);
  writer.constant("kVariantCount", info.variantCount);
  writer.constant("kBranchCount", info.branchCount);
  writer.constant("kParamCount", info.paramCount);
  writer.constant("kAsksTogether", traits.asksTogether);
  writeAll(writer, info, FunctionPresence::Always);
  writeKeptColumns(writer, info, patternFunction(kQueryTiles.keptColumns), traits.branchesWithWords);
  if (traits.hasBandColumns)
    writeBandColumns(writer, info, patternFunction(kQueryTiles.bandColumns));
  writeScoreDocument(writer, info, traits.hasScoreDocument);
  writeOptional(writer, {"kHasScore", info.hasScore, Generated::Score, "score"}, info);
  if (traits.isTransposed)
    writeGradients(writer, info, traits.hasScoreGradient);
  writeOptional(writer, {"kHasSink", info.hasSink, Generated::Sink, "0.0f"}, info);
  if (traits.hasDocumentRows)
    writeDocuments(writer, info);
  writeOperands(writer, info);
  pattern.end();
  return writer.take();
}

} // namespace heddle
