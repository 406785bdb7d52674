#include "runtime/Distributed/AgreementText.h"

#include "runtime/Core/Digest.h"
#include "runtime/Distributed/GroupCall.h"

namespace heddle {
namespace {

std::string num(int64_t value) { return std::to_string(value); }

std::string layoutText(const GroupPlan &plan) {
  std::string text;
  for (const std::vector<RowRange> &ranges : plan.layout) {
    for (const RowRange &range : ranges)
      text += num(range.begin) + ":" + num(range.end) + ",";
    text += ";";
  }
  return text;
}

} // namespace

GroupDigests GroupDigests::of(const GroupPlan &plan, const std::string &text) {
  return {sha256Hex(text), sha256Hex(layoutText(plan)).substr(0, 16)};
}

std::string agreementOf(const GroupRequest &request) {
  const heddle_attention_args &args = request.args;
  const GroupPlan &plan = request.plan;
  std::string text = std::string("version ") + heddle_version();
  auto add = [&](const std::string &name, const std::string &value) { text += "\n" + name + " " + value; };
  add("kind", kindOf(request, args.out.dtype == HEDDLE_FP32).str());
  add("q", dtypeName(request.elements.q)); // of which the others are: checkTensors
  for (const auto &[name, value] : {std::pair("batch", args.q.size[0]),
                                    {"head_dim", args.q.size[3]},
                                    {"value_dim", args.v.size[3]},
                                    {"lse", int64_t(args.lse != nullptr)},
                                    {"d_lse", int64_t(args.d_lse != nullptr)},
                                    {"seqlen", plan.rows},
                                    {"heads", plan.heads},
                                    {"kv_heads", plan.kvHeads}})
    add(name, num(value));
  add("pattern", plan.digest);
  add("scale", std::to_string(args.scale));
  for (uint64_t i = 0; i < args.operand_count; ++i)
    if (const heddle_operand &operand = args.operands[i]; operand.kind != HEDDLE_OPERAND_POINTER)
      add("operand " + num(operand.id),
          operand.kind == HEDDLE_OPERAND_INT ? num(operand.value.i64) : std::to_string(operand.value.f64));
  add("layout", request.digests.layout);
  add("plan", request.digests.plan);
  return text;
}

} // namespace heddle
