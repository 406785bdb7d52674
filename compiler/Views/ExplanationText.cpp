#include "compiler/Views/Explanation.h"
#include "compiler/Views/ExplanationPrint.h"
#include "runtime/Core/CountText.h"

#include <cstdarg>
#include <cstdio>

namespace heddle::views {

namespace {

std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char *pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

/// 3.2e12 -> "3.20 TFLOP".
std::string scaled(double value, double base, const char *const *units) {
  int unit = 0;
  for (; value >= base && units[unit + 1]; ++unit)
    value /= base;
  return format(unit ? "%.2f %s" : "%.0f %s", value, units[unit]);
}
std::string flopsText(double value) {
  static const char *const units[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", nullptr};
  return scaled(value, 1000, units);
}

class TextWriter {
public:
  TextWriter(const PatternFile &file, const ExplainRequest &request, const Explanation &said)
      : file(file), request(request), said(said) {}

  std::string write(bool withConfigs) {
    header();
    counts();
    costs();
    for (const VariantExplanation &variant : said.variants)
      heads(variant);
    if (withConfigs)
      configs();
    return text;
  }

private:
  void line(const char *label, const std::string &value) { text += format("  %-16s ", label) + value + "\n"; }

  std::string valueDimText() const {
    return request.valueDim == request.headDim ? "" : format(", value_dim %lld", (long long)request.valueDim);
  }

  void header() {
    attn::PatternOp pattern = file.pattern();
    text += "pattern " + pattern.getSymName().str() + " (" + file.path() + ")\n";
    const attn::ProblemSizes &s = request.sizes;
    line("problem", "batch " + grouped(request.batch) + ", " + counted(s.seqlenQ, "query") + ", " +
                        counted(s.seqlenK, "key") + ", " + counted(s.heads, "head") + " (" + grouped(request.kvHeads) +
                        " for k and v), head_dim " + std::to_string(request.headDim) + valueDimText() + ", " +
                        dtypeName(request.dtype));
    if (request.kind != Kind())
      line("kind", request.kind.name());
    std::string parameters;
    for (size_t i = 0; i < s.parameters.size(); ++i)
      if (!pattern.isOperand(i))
        parameters += (parameters.empty() ? "" : ", ") + pattern.getParameterName(i).str() + " = " +
                      pattern.getParameterText(i, s.parameters[i]);
    if (!parameters.empty())
      line("sizes", parameters);
    if (std::string chain = pattern.getSoftmax().scoresInWords(); !chain.empty())
      line("scores", chain);
  }

  void counts() {
    std::string note = said.keptPairsNote == "closed form" ? "" : "  (" + said.keptPairsNote + ")";
    line("kept pairs", (said.keptPairs ? grouped(*said.keptPairs) : "-") + note);
    if (said.density)
      line("density", format("%.4g %%", *said.density * 100));
    line("tiles",
         format("%lld x %lld: ", (long long)request.tile.rows, (long long)request.tile.columns) + tiles(said.tiles));
    line("transposed", tiles(said.transposedTiles));
    if (said.tileEfficiency)
      line("tile efficiency", format("%.1f %% of the pairs in visited tiles are kept", *said.tileEfficiency * 100));
    if (said.cliff)
      line("cliff", inWords(*said.cliff));
  }

  std::string tiles(const attn::TileCounts &counts) const {
    const bool isUnknown = attn::lacksTensors(file.analysis(), request.sizes);
    if (counts.isBound)
      return "at most " + grouped(counts.visited) + " visited, at least " + grouped(counts.full) + " full (" +
             std::string(isUnknown           ? "what its tensors hold is not known"
                         : counts.isCutShort ? "its closed form takes more evaluations than --limit"
                                             : "its lists are too long to be read") +
             ")";
    return grouped(counts.visited) + " visited = " + grouped(counts.full) + " full + " +
           grouped(counts.visited - counts.full) + " partial";
  }

  /// Names what calls of the kind read or write.
  std::string rolesText(Access access, const char *lastSeparator) const {
    std::string text;
    const std::vector<RoleSpec> roles = rolesOf(request.kind, access);
    for (const RoleSpec &role : roles)
      text += (text.empty() ? "" : role.role == roles.back().role ? lastSeparator : ", ") + std::string(role.name);
    return text;
  }

  void costs() {
    if (said.flops)
      line("operations", flopsText(double(*said.flops)));
    const bool hasTensors = llvm::any_of(attn::PatternOp(file.pattern()).getArgumentTypes(), attn::isOperandType);
    line("bytes", bytesText(double(said.bytes)) + " (" + rolesText(Access::read, ", ") + " once, " +
                      rolesText(Access::write, " and ") + " once" +
                      (hasTensors ? ", the pattern's tensors once)" : ")"));
    line("workspace", said.workspace ? bytesText(double(said.workspace->bytes)) : "- (" + said.workspaceNote + ")");
    if (said.workspace)
      for (const RegionExplanation &region : said.workspace->regions)
        line(("  " + region.name).c_str(), bytesText(double(region.bytes)) + " = " + region.formula + " bytes");
    if (said.sums)
      line("sums", format("of %s keys at most before they go on in fp32: sums of weights lose up to %.2g %%",
                          grouped(said.sums->keys).c_str(), 100 * said.sums->loss));
    if (!said.passes.empty())
      line("chained", chained());
    if (said.roofline)
      line("roofline",
           format("%.4g ms on %s, bound by %s (compute %.4g ms, memory %.4g ms)", said.roofline->ms,
                  said.gpuFullName.c_str(), boundText().c_str(), said.roofline->computeMs, said.roofline->memoryMs));
  }

  std::string boundText() const {
    if (!said.roofline->isComputeBound)
      return "memory bandwidth";
    return format("the %s matrix rate, %.4g TFLOP/s", dtypeName(request.dtype), said.roofline->matrixTflops);
  }

  /// "2 kernels, rows in 4 and 1 classes: 1,234 visited tiles, workspace 16.8 MiB (chained_mib=32)"
  std::string chained() const {
    std::string rates;
    attn::WideInt visited = 0;
    bool isBound = false;
    for (const PassExplanation &pass : said.passes) {
      rates += rates.empty() ? "" : &pass == &said.passes.back() ? " and " : ", ";
      rates += std::to_string(*llvm::max_element(pass.queryRates));
      visited += pass.tiles.visited;
      isBound |= pass.tiles.isBound;
    }
    return counted(said.passes.size(), "kernel") + ", rows in " + rates + " classes: " + (isBound ? "at most " : "") +
           counted(visited, "visited tile") +
           (said.chainedWorkspaceBytes ? ", workspace " + bytesText(double(*said.chainedWorkspaceBytes)) : "") +
           " (chained_mib=" + std::to_string(said.chainedMib) + ")";
  }

  /// Tiles of keys are spoken of where they alone are not found.
  static std::string howFound(const BranchExplanation &branch, size_t piece) {
    const std::string &why = branch.forward.whyMasked[piece], &whyTransposed = branch.transposed.whyMasked[piece];
    if (!why.empty())
      return "masked: " + why;
    return (branch.isListed[piece] ? "each next cell found by a search" : "closed form") +
           (whyTransposed.empty() ? "" : "; transposed masked: " + whyTransposed);
  }

  void heads(const VariantExplanation &variant) {
    std::string who = variant.heads == 0 ? "no head"
                      : variant.heads == 1
                          ? format("head %lld", (long long)variant.firstHead)
                          : counted(variant.heads, "head") + format(" from %lld on", (long long)variant.firstHead);
    text += who + ": rows in " + counted(variant.queryRate, "residue class") + "\n";
    for (size_t b = 0; b < variant.branches.size(); ++b) {
      const BranchExplanation &branch = variant.branches[b];
      text += format("  branch %zu, keys at rate %lld", b, (long long)branch.forward.columnRate);
      if (branch.forward.isMasked)
        text += ", masked: " + branch.forward.reason;
      else if (!branch.forward.reason.empty())
        text += " (" + branch.forward.reason + ")";
      if (branch.transposed.isMasked && !branch.forward.isMasked)
        text += ", transposed masked: " + branch.transposed.reason;
      text += branch.pieces.empty() ? ": keeps nothing\n" : "\n";
      for (size_t p = 0; p < branch.pieces.size(); ++p)
        text += "    " + branch.pieces[p] + " (" + howFound(branch, p) + ")\n";
    }
  }

  void configs() {
    ConfigChoices list = configChoicesOf(file, request);
    text += "configurations for " + list.arch + "\n";
    for (const SkeletonChoices &choices : list.skeletons) {
      if (!choices.refusal.empty())
        text += "  " + choices.name + " does not apply: " + choices.refusal + "\n";
      else
        text += "  " + grouped(choices.feasibleCount) + " of " + choices.name +
                (choices.feasibleCount == 1 ? " is" : " are") + " feasible; the default and its neighbours:\n";
      for (const ConfigChoice &choice : choices.nearDefault)
        text += "  " + choices.name + " " + choice.line + (choice.isDefault ? "  (default)" : "") + "\n";
      for (const auto &[name, rule] : choices.refused)
        text += "  " + grouped(rule.count) + " ruled out by " + name + ", such as\n    " + name + ": " + rule.reason +
                " (" + rule.config + ")\n";
    }
  }

  const PatternFile &file;
  const ExplainRequest &request;
  const Explanation &said;
  std::string text;
};

} // namespace

std::string bytesText(double value) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", nullptr};
  return scaled(value, 1024, units);
}

std::string explanationText(const PatternFile &file, const ExplainRequest &request, const Explanation &explanation,
                            bool withConfigs) {
  return TextWriter(file, request, explanation).write(withConfigs);
}

} // namespace heddle::views
