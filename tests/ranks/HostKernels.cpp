//===- HostKernels.cpp - from words to a call -----------------------------------------===//
#include "HostKernels.h"
#include "Scene.h"

#include "runtime/Core/CallArguments.h"
#include "runtime/Core/Digest.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Device/Kernel.h"
#include "runtime/Store/Store.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace heddle::ranks {
namespace {

using Symbol = LaunchSymbol;

// In the order in which they are words of the parameters.
constexpr Symbol kSizes[] = {Symbol::batch,   Symbol::heads,   Symbol::kvHeads, Symbol::seqlenQ,
                             Symbol::seqlenK, Symbol::headDim, Symbol::qOrigin, Symbol::kOrigin};

std::vector<HostKernel> &known() {
  static auto *all = new std::vector<HostKernel>;
  return *all;
}

int64_t argumentCount(const HostKernel &kernel) {
  auto info = sized<heddle_pattern_info>();
  return heddle_pattern_get_info(kernel.pattern, &info) == HEDDLE_OK ? info.argument_count : 0;
}

LaunchPlan planOf(const HostKernel &kernel, const KindText &kind, size_t number) {
  LaunchPlan plan{PlanService(kind.kind)};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.appendI64(int64_t(number));
  for (const KindRole &role : kind.kind.roles()) {
    launch.appendPointer(role.role);
    for (StrideDim dim : {StrideDim::batch, StrideDim::row, StrideDim::head})
      if (specOf(role.role).form == RoleForm::tensor)
        launch.appendI64(strideOf(role.role, dim));
  }
  for (Symbol size : kSizes)
    launch.appendI64(size);
  for (int64_t argument = 0; argument < argumentCount(kernel); ++argument)
    launch.appendI64(LaunchExpr::param(argument));
  launch.appendScaleLog2();
  return plan;
}

// The words, one after the other.
class Words {
public:
  explicit Words(const void *params) : next(static_cast<const char *>(params)) {}
  template <class T> T take() {
    T value;
    std::memcpy(&value, next, sizeof value);
    next += sizeof value;
    return value;
  }

private:
  const char *next;
};

struct RoleWords {
  char *address = nullptr;
  int64_t strides[3] = {};
};

void give(heddle_attention_args &args, const KindRole &role, const RoleWords &words, DType dtype,
          const LaunchSymbols &sizes) {
  const RoleSpec spec = specOf(role);
  const int64_t rows = sizes[spec.rows == RoleExtent::seqlenK ? Symbol::seqlenK : Symbol::seqlenQ];
  const int64_t heads = sizes[spec.heads == RoleExtent::kvHeads ? Symbol::kvHeads : Symbol::heads];
  bindRole(args, role.role, words.address, dtype,
           {sizes[Symbol::batch], rows, heads, spec.dim == RoleExtent::one ? 1 : sizes[Symbol::headDim]});
  if (spec.form == RoleForm::tensor)
    std::copy_n(words.strides, 3, const_cast<heddle_tensor &>(tensorOf(args, role.role)).stride);
}

[[noreturn]] void give_up(const std::string &why) {
  std::fprintf(stderr, "a launch on the processors failed: %s\n", why.c_str());
  std::abort();
}

} // namespace

void runHostKernel(const char *, const void *params) {
  Words words(params);
  const HostKernel &kernel = known().at(size_t(words.take<int64_t>()));
  const KindText kind = *KindText::parse(kernel.kind);
  const DType inputs = *dtypeOfCode(kernel.dtype);
  const CallElements elements = kind.elements(inputs);
  std::vector<RoleWords> roles;
  for (const KindRole &role : kind.kind.roles()) {
    roles.push_back({words.take<char *>(), {}});
    for (int64_t &stride : roles.back().strides)
      if (specOf(role.role).form == RoleForm::tensor)
        stride = words.take<int64_t>();
  }
  LaunchSymbols sizes;
  for (Symbol size : kSizes)
    sizes[size] = words.take<int64_t>();
  heddle_attention_args args = makeAttentionArgs();
  for (size_t i = 0; i < roles.size(); ++i)
    if (const KindRole &role = kind.kind.roles()[i]; roles[i].address)
      give(args, role, roles[i], elements.of(specOf(role).element), sizes);
  args.q_origin = sizes[Symbol::qOrigin], args.k_origin = sizes[Symbol::kOrigin];
  std::vector<heddle_operand> operands(size_t(argumentCount(kernel)));
  for (size_t i = 0; i < operands.size(); ++i) {
    operands[i].id = int32_t(i), operands[i].kind = HEDDLE_OPERAND_INT;
    operands[i].value.i64 = words.take<int64_t>();
  }
  args.operands = operands.data(), args.operand_count = operands.size();
  args.scale = words.take<float>() * 0.69314718056f;
  if (heddle_cpu_run(kernel.pattern, kernel.kind.c_str(), &args, 1) != HEDDLE_OK)
    give_up(heddle_last_message());
}

Status publishHostKernel(const std::string &database, const HostKernel &kernel) {
  for (const HostKernel &other : known())
    if (other.digest == kernel.digest && other.kind == kernel.kind && other.dtype == kernel.dtype &&
        other.dim == kernel.dim)
      return {};
  HEDDLE_ASSIGN(const KindText kind, KindText::parse(kernel.kind));
  KernelRecord record;
  record.pattern = kernel.digest;
  record.kind = kernel.kind;
  record.dtype = *dtypeOfCode(kernel.dtype);
  record.headDim = record.valueDim = kernel.dim;
  record.generator = "host";
  record.contentKey = sha256Hex("host kernel " + std::to_string(known().size()));
  record.kernelArch = "sm_90";
  record.plan = planOf(kernel, kind, known().size()).str();
  record.cubin = "\x7f"
                 "ELF of no machine, as long as a header of such a file is";
  Winner winner;
  static_cast<WinnerKey &>(winner) = WinnerKey(record, {0, 0, 1}, {"", record.kernelArch, 0, 0});
  winner.contentKey = record.contentKey;
  StoreOptions options;
  options.mode = StoreMode::readWrite;
  HEDDLE_ASSIGN(Store store, Store::open(database, options));
  HEDDLE_TRY(store.publish(record, winner));
  known().push_back(kernel);
  return {};
}

} // namespace heddle::ranks
