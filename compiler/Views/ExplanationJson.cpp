#include "compiler/Views/Explanation.h"
#include "compiler/Views/ExplanationPrint.h"

#include "dialect/IR/RealWord.h"

#include <nlohmann/json.hpp>

#include <limits>

namespace heddle::views {

using Json = nlohmann::ordered_json;

namespace {

class JsonWriter {
public:
  JsonWriter(const PatternFile &file, const ExplainRequest &request, const Explanation &said)
      : file(file), request(request), said(said) {}

  std::string write(bool withConfigs, const Quality *quality) {
    attn::PatternOp pattern = file.pattern();
    Json root = {{"pattern", pattern.getSymName().str()}, {"file", file.path()}};
    root["kind"] = request.kind.name();
    root["sizes"] = sizes();
    root["kept_pairs"] = said.keptPairs ? integer(*said.keptPairs) : Json();
    root["kept_pairs_note"] = said.keptPairsNote;
    root["density"] = optional(said.density);
    root["tiles"] = tiles(said.tiles);
    root["transposed_tiles"] = tiles(said.transposedTiles);
    root["tile_efficiency"] = optional(said.tileEfficiency);
    root["cliff"] = cliff();
    root["flops"] = said.flops ? integer(*said.flops) : Json();
    root["bytes"] = integer(said.bytes);
    root["workspace_bytes"] = said.workspace ? Json(said.workspace->bytes) : Json();
    root["workspace_regions"] = regions();
    if (!said.workspaceNote.empty())
      root["workspace_note"] = said.workspaceNote;
    root["passes"] = passes();
    if (!said.whyOnePass.empty())
      root["why_one_pass"] = said.whyOnePass;
    if (!said.passes.empty())
      root["chained_workspace_bytes"] = optional(said.chainedWorkspaceBytes);
    root["roofline"] = roofline();
    root["sums"] = said.sums ? Json{{"keys", said.sums->keys}, {"loss", said.sums->loss}} : Json();
    root["variants"] = variants();
    if (withConfigs)
      root["configs"] = configs();
    if (quality)
      root["quality"] = measured(*quality);
    if (isBig)
      root["big_integers"] = true;
    return root.dump(2) + "\n";
  }

private:
  Json regions() const {
    Json list = Json::array();
    if (!said.workspace)
      return list;
    for (const RegionExplanation &region : said.workspace->regions)
      list.push_back({{"name", region.name}, {"formula", region.formula}, {"bytes", region.bytes}});
    return list;
  }

  Json integer(WideInt value) {
    if (value >= 0 && value <= WideInt(std::numeric_limits<uint64_t>::max()))
      return static_cast<uint64_t>(value);
    isBig = true;
    return attn::toString(value);
  }
  template <class T> static Json optional(const std::optional<T> &value) { return value ? Json(*value) : Json(); }

  Json sizes() {
    const attn::ProblemSizes &s = request.sizes;
    Json parameters = Json::object();
    attn::PatternOp pattern = file.pattern();
    for (size_t i = 0; i < s.parameters.size(); ++i)
      if (!pattern.isOperand(i))
        parameters[pattern.getParameterName(i).str()] =
            pattern.isRealParameter(i) ? Json(attn::realOfWord(s.parameters[i])) : Json(s.parameters[i]);
    return {{"batch", request.batch},
            {"seqlen_q", s.seqlenQ},
            {"seqlen_k", s.seqlenK},
            {"heads", s.heads},
            {"kv_heads", request.kvHeads},
            {"head_dim", request.headDim},
            {"value_dim", request.valueDim},
            {"dtype", dtypeName(request.dtype)},
            {"q_origin", s.qOrigin},
            {"block_m", request.tile.rows},
            {"block_n", request.tile.columns},
            {"parameters", parameters},
            {"scores", pattern.getSoftmax().scoresInWords()}};
  }

  Json tiles(const attn::TileCounts &counts) {
    return {{"visited", integer(counts.visited)},
            {"full", integer(counts.full)},
            {"partial", integer(counts.visited - counts.full)},
            {"is_bound", counts.isBound}};
  }

  Json cliff() const {
    if (!said.cliff)
      return {};
    const Cliff &cliff = *said.cliff;
    return {
        {"cause", cliff.cause}, {"detail", cliff.detail}, {"advice", cliff.advice}, {"factor", optional(cliff.factor)}};
  }

  Json passes() {
    Json list = Json::array();
    for (const PassExplanation &pass : said.passes)
      list.push_back({{"query_rates", pass.queryRates}, {"tiles", tiles(pass.tiles)}});
    return list;
  }

  Json roofline() {
    Json json = {{"gpu", said.gpu}, {"ms", Json()}, {"bound", Json()}};
    if (said.roofline) {
      json["ms"] = said.roofline->ms;
      json["bound"] = said.roofline->isComputeBound ? "compute" : "memory";
      json["matrix_tflops"] = said.roofline->matrixTflops;
      json["compute_ms"] = said.roofline->computeMs;
      json["memory_ms"] = said.roofline->memoryMs;
    }
    return json;
  }

  Json variants() {
    Json list = Json::array();
    for (const VariantExplanation &variant : said.variants) {
      Json branches = Json::array();
      for (const BranchExplanation &branch : variant.branches)
        branches.push_back({{"key_rate", branch.forward.columnRate},
                            {"masked", branch.forward.isMasked},
                            {"reason", branch.forward.reason},
                            {"pieces", branch.pieces},
                            {"why_masked", branch.forward.whyMasked},
                            {"transposed",
                             {{"query_rate", branch.transposed.columnRate},
                              {"masked", branch.transposed.isMasked},
                              {"reason", branch.transposed.reason},
                              {"why_masked", branch.transposed.whyMasked}}}});
      list.push_back({{"heads", variant.heads},
                      {"first_head", variant.heads ? Json(variant.firstHead) : Json()},
                      {"query_rate", variant.queryRate},
                      {"branches", branches}});
    }
    return list;
  }

  static Json measured(const Quality &quality) {
    const RowQuality &rows = quality.rows;
    const DepthQuality &depth = quality.depth;
    const BalanceQuality &balance = quality.balance;
    Json json = {{"reference", rows.isCausal ? "causal" : "dense"},
                 {"rows", rows.rows},
                 {"rows_in_all", rows.rowsInAll},
                 {"empty_rows", rows.emptyRows},
                 {"mean_mass", rows.meanMass},
                 {"least_mass", rows.leastMass},
                 {"least_mass_head", rows.leastHead},
                 {"least_mass_row", rows.leastRow},
                 {"relative_error", rows.relativeError},
                 {"max_error", rows.maxError}};
    json["depth"] = depth.whyNot.empty() ? Json{{"layers", optional(depth.closure.layers)},
                                                {"node_positions", depth.nodeSize},
                                                {"connected", depth.closure.connected},
                                                {"settled_after", depth.closure.settledAfter}}
                                         : Json{{"layers", Json()}, {"reason", depth.whyNot}};
    json["imbalance"] = balance.whyNot.empty() ? Json{{"ratio", balance.imbalance()},
                                                      {"most_tiles", balance.most},
                                                      {"mean_tiles", balance.mean},
                                                      {"query_tiles", balance.queryTiles}}
                                               : Json{{"ratio", Json()}, {"reason", balance.whyNot}};
    return json;
  }

  Json configs() {
    Json list = Json::array();
    ConfigChoices all = configChoicesOf(file, request);
    for (const SkeletonChoices &choices : all.skeletons) {
      if (!choices.refusal.empty()) {
        list.push_back({{"skeleton", choices.name}, {"applies", false}, {"reason", choices.refusal}});
        continue;
      }
      Json near = Json::array(), rejected = Json::object();
      for (const ConfigChoice &choice : choices.nearDefault) {
        near.push_back(Json::parse(choice.json));
        near.back()["default"] = choice.isDefault;
      }
      for (const auto &[name, rule] : choices.refused)
        rejected[name] = {{"count", rule.count}, {"example", rule.reason + " (" + rule.config + ")"}};
      list.push_back({{"skeleton", choices.name},
                      {"applies", true},
                      {"feasible", choices.feasibleCount},
                      {"near_default", near},
                      {"rejected", rejected}});
    }
    return list;
  }

  const PatternFile &file;
  const ExplainRequest &request;
  const Explanation &said;
  bool isBig = false;
};

} // namespace

std::string explanationJson(const PatternFile &file, const ExplainRequest &request, const Explanation &explanation,
                            bool withConfigs, const Quality *quality) {
  return JsonWriter(file, request, explanation).write(withConfigs, quality);
}

} // namespace heddle::views
