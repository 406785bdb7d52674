#include "compiler/Group/GroupForms.h"
#include "compiler/Library/CompiledPattern.h"
#include "compiler/Pattern/HeadDependence.h"
#include "compiler/Pattern/RowTensors.h"
#include "dialect/Geometry/NamedLayout.h"
#include "dialect/IR/PatternOperands.h"

#include <charconv>
#include <functional>
#include <set>

namespace heddle {
namespace {

/// "0:64,192:256;64:192"; none: no such text.
std::optional<attn::ShardLayout> parseLayout(const std::string &text) {
  attn::ShardLayout layout;
  const char *at = text.data(), *end = at + text.size();
  auto number = [&](int64_t &value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next;
    return error == std::errc();
  };
  for (char before = ';'; before == ';' || before == ',';) {
    if (before == ';')
      layout.ranks.emplace_back();
    attn::IndexRange range{0, 0};
    const bool isRange = number(range.begin) && at != end && *at++ == ':' && number(range.end);
    layout.ranks.back().push_back(range);
    before = at == end ? '\0' : *at++;
    if (!isRange || (before != '\0' && before != ';' && before != ','))
      return std::nullopt;
  }
  return layout;
}

Result<attn::ShardLayout> layoutOf(const heddle_group_options &options, const attn::LayoutRequest &request) {
  const std::string text = options.layout ? options.layout : "contiguous";
  const std::optional<attn::ShardLayout> ranges = parseLayout(text);
  if (!ranges)
    return attn::namedLayout(text, request);
  if (ranges->ranks.size() != size_t(options.ranks))
    return Status::invalidArgument("layout: expected ranges of " + std::to_string(options.ranks) + " ranks, got " +
                                   std::to_string(ranges->ranks.size()));
  return *ranges;
}

/// Given by number. What is given with an address is the length of that tensor.
std::vector<PlannedSize> sizesOf(const heddle_group_options &options,
                                 const std::vector<heddle_pattern_argument> &described) {
  std::vector<PlannedSize> sizes;
  std::set<int64_t> tensors;
  for (uint64_t i = 0; i < uint64_t(options.operand_count); ++i)
    if (options.operands[i].kind == HEDDLE_OPERAND_POINTER)
      tensors.insert(options.operands[i].id);
  for (uint64_t i = 0; i < uint64_t(options.operand_count); ++i)
    if (const heddle_operand &given = options.operands[i]; given.kind == HEDDLE_OPERAND_INT && !tensors.count(given.id))
      sizes.push_back({given.id, given.value.i64, described[size_t(given.id)].name});
  return sizes;
}

/// Of calls whose time decides on a form; 0 where they are not given: as the header says.
Result<RingCall> callOf(const heddle_group_options &options) {
  RingCall call;
  auto givenOr = [](auto given, auto otherwise) { return given ? given : otherwise; };
  call.heads = options.heads, call.kvHeads = options.kv_heads;
  call.batch = givenOr(options.batch, call.batch);
  call.headDim = givenOr(options.head_dim, call.headDim);
  call.valueDim = givenOr(options.value_dim, call.headDim);
  const std::optional<DType> dtype = options.dtype ? dtypeOfCode(options.dtype) : kDefaultDType;
  if (!dtype)
    return Status::invalidArgument("dtype: " + expectedElement(&ElementTraits::isOfCalls, options.dtype));
  call.dtype = *dtype;
  HEDDLE_ASSIGN(const GpuModel *gpu, findGpuModel(kGpuOfRates));
  const double ofSheet = gpu->matrixTflops(*dtype) * kKernelEfficiency;
  call.rates.setKernels(*gpu, givenOr(options.kernel_tflops, ofSheet), ofSheet);
  call.rates.launchUs = kLaunchUs;
  call.rates.linkGBps = givenOr(options.link_gbps, kHostLinkGBps);
  call.rates.latencyUs = givenOr(options.link_us, kHostLatencyUs);
  call.rates.hostRanks = options.host_ranks;
  call.rates.hostGBps = givenOr(options.host_link_gbps, kHostLinkGBps);
  call.rates.hostLatencyUs = givenOr(options.host_link_us, kHostLatencyUs);
  return call;
}

Result<FormChoice> formOf(const heddle_group_options &options, const attn::GroupPlanRequest &request) {
  const std::string name = options.form ? options.form : "auto";
  if (const std::optional<TeamForm> form = parseTeamForm(name, options.ranks))
    return FormChoice{*form, {}};
  if (name != "auto")
    return Status::invalidArgument(std::string("form: expected ") + kTeamForms + ", got " + name);
  HEDDLE_ASSIGN(const RingCall call, callOf(options));
  return chooseForm(request, call, (options.flags & HEDDLE_GROUP_GRADIENTS) != 0);
}

/// As formOf(), with the time of a form that is given.
Result<FormChoice> timedFormOf(const heddle_group_options &options, const attn::GroupPlanRequest &request) {
  HEDDLE_ASSIGN(const FormChoice choice, formOf(options, request));
  if (choice.ms)
    return choice;
  HEDDLE_ASSIGN(const RingCall call, callOf(options));
  return timedForm(request, choice.form, call, (options.flags & HEDDLE_GROUP_GRADIENTS) != 0);
}

/// Of all that have a name, by the same rule as `heddle ring plan`.
Result<attn::ShardLayout> bestLayout(const heddle_group_options &options, const attn::LayoutRequest &request,
                                     const std::function<attn::GroupPlanRequest(const attn::ShardLayout &)> &planOf) {
  std::vector<attn::ShardLayout> layouts;
  std::vector<attn::LayoutFigures> figures;
  for (const std::string &name : attn::layoutNames()) {
    Result<attn::ShardLayout> layout = attn::namedLayout(name, request);
    if (!layout && layouts.empty()) // too few rows for contiguous parts
      return layout.status();
    if (!layout)
      continue;
    HEDDLE_ASSIGN(const FormChoice choice, timedFormOf(options, planOf(*layout)));
    figures.push_back(figuresOf(name, *layout, choice));
    layouts.push_back(layout.take());
  }
  return layouts[attn::chooseLayout(figures).index];
}

} // namespace

/// The request refers to what lives as long as `use` runs.
Status CompiledPattern::withGroup(const heddle_group_options &options, const UseGroup &use) {
  HEDDLE_ASSIGN(std::vector<int64_t> words, parameters(options.operands, options.operand_count, /*needsLengths=*/true));
  HEDDLE_ASSIGN(const std::shared_ptr<CompiledPattern> ofParts, part());
  CpuCall call;
  call.batch = 1, call.heads = int32_t(options.heads);
  call.seqlenQ = call.seqlenK = int32_t(options.seqlen);
  call.params.assign(words.begin(), words.end());
  attn::ProblemSizes sizes;
  sizes.heads = options.heads;
  sizes.seqlenQ = sizes.seqlenK = options.seqlen;
  sizes.parameters = words;
  sizes.tensors = integersOf(options.operands, options.operand_count, call);
  std::lock_guard<std::mutex> lock(mutex);
  const attn::LayoutRequest ofLayout{file->analysis(), sizes, options.ranks};
  const std::string differsByHead = whatDependsOnHeads(file->pattern(), {file->analysis(), sizes});
  auto planOf = [&](const attn::ShardLayout &layout) {
    attn::GroupPlanRequest request{file->analysis(), sizes, layout};
    request.kvHeads = options.kv_heads, request.digest = ofParts->info().digest, request.wholes = ofParts->wholes();
    for (unsigned argument : attn::maskTensorsOf(file->pattern()))
      request.batches |= attn::hasExtent(file->pattern(), argument, attn::Extent::Batch);
    request.differsByHead = differsByHead;
    request.isPlacementFree = (options.flags & HEDDLE_GROUP_PLACEMENT_FREE) != 0;
    request.areGradientsDetached = file->pattern().getSoftmax().isDetached();
    request.hasSink = file->pattern().getSoftmax().hasSink();
    request.rowTensors = rowTensorsOf(file->pattern(), options.seqlen);
    request.farthestGap = options.farthest_gap ? options.farthest_gap : request.farthestGap;
    request.columnStep = options.column_step ? options.column_step : 256;
    return request;
  };
  const bool isChosen = options.layout && std::string(options.layout) == "auto";
  HEDDLE_ASSIGN(const attn::ShardLayout layout,
                isChosen ? bestLayout(options, ofLayout, planOf) : layoutOf(options, ofLayout));
  attn::GroupPlanRequest request = planOf(layout);
  return use(request);
}

Result<FormChoice> CompiledPattern::groupForm(const heddle_group_options &options) {
  FormChoice choice;
  HEDDLE_TRY(withGroup(options, [&](attn::GroupPlanRequest &request) -> Status {
    HEDDLE_ASSIGN(choice, formOf(options, request));
    return {};
  }));
  return choice;
}

Result<GroupPlan> CompiledPattern::groupPlan(const heddle_group_options &options) {
  GroupPlan plan;
  HEDDLE_TRY(withGroup(options, [&](attn::GroupPlanRequest &request) -> Status {
    HEDDLE_ASSIGN(const FormChoice choice, formOf(options, request));
    request.form = choice.form.form, request.headRanks = choice.form.headRanks;
    HEDDLE_ASSIGN(plan, attn::makeGroupPlan(request));
    return {};
  }));
  plan.sizes = sizesOf(options, described);
  return plan;
}

} // namespace heddle
