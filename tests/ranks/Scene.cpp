//===- Scene.cpp - tensors and rows ------------------------------------------------===//
#include "Scene.h"
#include "Board.h"

#include "runtime/Api/GroupHandles.h"
#include "runtime/Core/CallArguments.h"
#include "runtime/Core/ElementConvert.h"
#include "runtime/Device/Kernel.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace heddle::ranks {

const std::vector<Field> kFields = {
    {Role::q, false, false, false, false},  {Role::k, false, false, true, false},
    {Role::v, false, false, true, false},   {Role::dOut, false, false, false, false},
    {Role::dLse, false, true, false, true}, {Role::out, true, false, false, false},
    {Role::lse, true, true, false, true},   {Role::dQ, true, false, false, true},
    {Role::dK, true, false, true, true},    {Role::dV, true, false, true, true},
};

Status said(heddle_status status) {
  return status == HEDDLE_OK ? Status() : Status(StatusCode(status), heddle_last_message());
}

std::string SceneSpec::name() const {
  std::string text = pattern.substr(0, pattern.find('\n'));
  for (int64_t size : sizes)
    text += " " + std::to_string(size);
  text += " rows=" + std::to_string(rows) + " heads=" + std::to_string(heads) + "/" + std::to_string(kvHeads) +
          " d=" + std::to_string(dim) + " " + layout + " " + formOf(headRanks);
  text += dtype == HEDDLE_BF16 ? "" : std::string(" ") + dtypeName(*dtypeOfCode(dtype));
  text += isTf32 ? " tf32" : "";
  text += writesQueryGradient ? " writes-d_q" : "";
  return text + (isPlacementFree ? " placement-free" : "");
}

std::string SceneSpec::formOf(int ranks) const {
  return headRanks > 1 && ranks % headRanks == 0 ? "ulysses" + std::to_string(headRanks) + "+" + form : form;
}

Result<std::unique_ptr<Scene>> Scene::make(const SceneSpec &spec) {
  std::unique_ptr<Scene> made(new Scene(spec));
  HEDDLE_TRY(made->open());
  made->fill();
  return made;
}

Scene::~Scene() {
  for (const auto &[ranks, plan] : plans)
    heddle_group_plan_close(plan);
}

static Status openPattern(const std::string &nameOrText, heddle_pattern *&whole, heddle_pattern *&part) {
  static auto *opened = new std::map<std::string, std::pair<heddle_pattern *, heddle_pattern *>>;
  auto &known = (*opened)[nameOrText];
  if (!known.first) {
    const bool isName = nameOrText.find(' ') == std::string::npos;
    HEDDLE_TRY(said(isName ? heddle_pattern_read(("patterns/" + nameOrText + ".mlir").c_str(), nullptr, &known.first)
                           : heddle_pattern_parse(nameOrText.c_str(), nullptr, nullptr, &known.first)));
    HEDDLE_TRY(said(heddle_pattern_part(known.first, &known.second)));
  }
  std::tie(whole, part) = known;
  return {};
}

Status Scene::open() {
  HEDDLE_TRY(openPattern(spec.pattern, whole, part));
  auto give = [](std::vector<heddle_operand> &to, int32_t id, int64_t value) {
    heddle_operand &operand = to.emplace_back();
    operand.id = id, operand.kind = HEDDLE_OPERAND_INT, operand.value.i64 = value;
  };
  for (size_t i = 0; i < spec.sizes.size(); ++i)
    give(operands, int32_t(i), spec.sizes[i]);
  operandsOfPart = operands;
  auto info = sized<heddle_pattern_info>();
  HEDDLE_TRY(said(heddle_pattern_get_info(part, &info)));
  for (int32_t i = int32_t(operands.size()); i < info.argument_count; ++i)
    give(operandsOfPart, i, spec.rows);
  return {};
}

void Scene::fill() {
  for (size_t field = 0; field < kFields.size(); ++field) {
    const size_t bytes = bytesOf(kFields[field], spec.rows);
    tensors.push_back(sharedBytes(bytes));
    expected.push_back(kFields[field].isResult ? sharedBytes(bytes) : nullptr);
    const DType type = typeOf(kFields[field]);
    auto next = [state = uint64_t(field + 1)]() mutable { // evenly in [-1, 1), by Knuth's MMIX
      state = state * 6364136223846793005u + 1442695040888963407u;
      return float(int32_t(state >> 32)) / 2147483648.f;
    };
    for (int64_t i = 0; !kFields[field].isResult && i < int64_t(bytes) / dtypeBytes(type); ++i) {
      const float value = next();
      storeElements(type, &value, 1, tensors.back(), i);
    }
  }
}

Result<const heddle_group_plan *> Scene::plan(int ranks) {
  heddle_group_plan *&made = plans[ranks];
  if (made)
    return const_cast<const heddle_group_plan *>(made);
  auto options = sized<heddle_group_options>();
  options.ranks = ranks;
  options.seqlen = spec.rows, options.heads = spec.heads, options.kv_heads = spec.kvHeads;
  const std::string form = spec.formOf(ranks);
  options.layout = spec.layout.c_str(), options.form = form.c_str();
  options.flags = spec.isPlacementFree ? HEDDLE_GROUP_PLACEMENT_FREE : 0;
  options.operands = operands.data(), options.operand_count = operands.size();
  HEDDLE_TRY(said(heddle_group_plan_make(whole, &options, &made)));
  return const_cast<const heddle_group_plan *>(made);
}

int64_t Scene::rowsOf(const heddle_group_plan &plan, int rank) const { return plan.plan->rowsOf(rank); }

DType Scene::typeOf(const Field &field) const {
  const bool isOfInputs = !field.isFloat || (field.role == Role::dQ && spec.writesQueryGradient);
  return isOfInputs ? *dtypeOfCode(spec.dtype) : DType::fp32;
}

size_t Scene::bytesOf(const Field &field, int64_t rows) const {
  const int64_t heads = field.isOfKeys ? spec.kvHeads : spec.heads;
  return size_t(spec.batch * rows * heads * (field.isArray ? 1 : spec.dim) * dtypeBytes(typeOf(field)));
}

Bytes Scene::share(int64_t rows) const {
  Bytes made;
  for (const Field &field : kFields)
    made.push_back(new uint8_t[bytesOf(field, rows)]); // as long as the process
  return made;
}

void Scene::moveRows(const heddle_group_plan &plan, int rank, size_t number, uint8_t *whole, uint8_t *share,
                     bool isToWhole) const {
  const Field &field = kFields[number];
  const int64_t own = rowsOf(plan, rank), heads = field.isOfKeys ? spec.kvHeads : spec.heads;
  const int64_t runs = spec.batch * (field.isArray ? heads : 1);
  const size_t rowBytes = bytesOf(field, 1) / size_t(runs);
  for (int64_t run = 0; run < runs; ++run) {
    int64_t first = 0;
    for (const RowRange &range : plan.plan->layout[size_t(rank)]) {
      uint8_t *there = whole + size_t(run * spec.rows + range.begin) * rowBytes;
      uint8_t *here = share + size_t(run * own + first) * rowBytes;
      std::memcpy(isToWhole ? there : here, isToWhole ? here : there, size_t(range.size()) * rowBytes);
      first += range.size();
    }
  }
}

heddle_attention_args Scene::arguments(const std::vector<void *> &addresses, int64_t rows, bool isBackward) const {
  heddle_attention_args args = makeAttentionArgs();
  for (size_t i = 0; i < kFields.size(); ++i) {
    const Field &field = kFields[i];
    const bool isOfGradients =
        field.role == Role::dOut || field.role == Role::dLse || specOf(field.role).name[0] == 'd';
    if (isOfGradients && !isBackward)
      continue;
    const int64_t heads = field.isOfKeys ? spec.kvHeads : spec.heads;
    bindRole(args, field.role, addresses[i], typeOf(field), {spec.batch, rows, heads, field.isArray ? 1 : spec.dim});
  }
  args.operands = operands.data(), args.operand_count = operands.size();
  return args;
}

void Scene::spoil(const Bytes &results) const {
  for (size_t i = 0; i < kFields.size(); ++i)
    if (kFields[i].isResult)
      std::memset(results[i], 0xff, bytesOf(kFields[i], spec.rows));
}

// Of a field, once one call has given it.
double Scene::largestExpected(size_t number) const {
  const auto [place, isNew] = largest.try_emplace(number, 0);
  const DType type = typeOf(kFields[number]);
  const size_t bytes = isNew ? bytesOf(kFields[number], spec.rows) : 0;
  for (size_t at = 0; at < bytes; at += size_t(dtypeBytes(type)))
    if (const double value = loadElement(type, expected[number] + at, 0); std::isfinite(value))
      place->second = std::max(place->second, std::abs(value));
  return place->second;
}

std::string Scene::difference(const heddle_group_plan &plan, int rank, const Bytes &got, const Bytes &wanted,
                              const Tolerance &tolerance) const {
  const int64_t rows = rowsOf(plan, rank);
  for (size_t i = 0; i < kFields.size(); ++i) {
    const Field &field = kFields[i];
    if (!field.isResult)
      continue;
    const DType type = typeOf(field);
    const size_t bytes = bytesOf(field, rows), width = size_t(dtypeBytes(type));
    std::vector<uint8_t> mine(bytes), theirs(bytes);
    moveRows(plan, rank, i, got[i], mine.data(), false);
    moveRows(plan, rank, i, wanted[i], theirs.data(), false);
    if (mine == theirs)
      continue;
    const double ofLargest = tolerance.ofLargest > 0 ? tolerance.ofLargest * largestExpected(i) : 0;
    const double allowed = std::max(ofLargest, field.role == Role::out ? tolerance.ofMeans : 0);
    auto numberAt = [&](const uint8_t *place) { return loadElement(type, place, 0); };
    for (size_t at = 0; at < bytes; at += width) {
      if (std::memcmp(&mine[at], &theirs[at], width) == 0)
        continue;
      const double a = numberAt(&mine[at]), b = numberAt(&theirs[at]);
      if (!(std::abs(a - b) <= allowed))
        return std::string(specOf(field.role).name) + " of rank " + std::to_string(rank) + ": element " +
               std::to_string(at / width) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
    }
  }
  return "";
}

} // namespace heddle::ranks
