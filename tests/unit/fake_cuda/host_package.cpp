//===- host_package.cpp - a packed file for the recording driver ------------===//
// heddle-host-package OUT LIBRARY: a package like those of `heddle pack`, whose kernels (causal and sliding_window,
// bf16, head dim 64) are the library that host_attention.c becomes. Programs run it where no compiler and no GPU is.
//===----------------------------------------------------------------------===//
#include "runtime/Core/Digest.h"
#include "runtime/Core/LaunchPlan.h"
#include "runtime/Store/Store.h"

#include <cstdio>
#include <fstream>
#include <iterator>

using namespace heddle;

namespace {

// The parameters of host_attention.c.
LaunchPlan planOf(LaunchExpr left) {
  using Symbol = LaunchSymbol;
  LaunchPlan plan{PlanService(Kind())};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.grid = {ceilDiv(Symbol::seqlenQ, 128) * LaunchExpr(Symbol::heads) * LaunchExpr(Symbol::batch), 1, 1};
  launch.block = 128;
  for (Role role : {Role::q, Role::k, Role::v, Role::out, Role::lse})
    launch.appendPointer(role);
  for (Role role : {Role::q, Role::k, Role::v, Role::out})
    for (StrideDim dim : {StrideDim::batch, StrideDim::row, StrideDim::head})
      launch.appendI64(strideOf(role, dim));
  for (Symbol symbol : {Symbol::batch, Symbol::heads, Symbol::kvHeads, Symbol::seqlenQ, Symbol::seqlenK,
                        Symbol::qOrigin, Symbol::kOrigin})
    launch.appendI32(symbol);
  launch.appendScaleLog2();
  launch.appendI32(left);
  launch.appendPointer(Role::carryOut);
  launch.appendPointer(Role::carryLse);
  return plan;
}

Status publish(Store &store, const std::string &name, const std::string &arguments, const LaunchPlan &plan,
               const std::string &library) {
  KernelRecord record;
  record.pattern = sha256Hex(name);
  record.headDim = record.valueDim = 64;
  record.generator = "host";
  record.contentKey = sha256Hex("host kernel of " + name);
  record.kernelArch = "sm_90";
  record.plan = plan.str();
  record.cubin = library;
  Winner winner;
  static_cast<WinnerKey &>(winner) = WinnerKey(record, {0, 0, 1}, {"", record.kernelArch, 0, 0});
  winner.contentKey = record.contentKey;
  HEDDLE_TRY(store.publish(record, winner));
  return store.setName({name, record.pattern, arguments, 0});
}

Status makePackage(const std::string &path, const std::string &library) {
  StoreOptions options;
  options.mode = StoreMode::readWrite;
  HEDDLE_ASSIGN(Store store, Store::open(path, options));
  HEDDLE_TRY(publish(store, "causal", "", planOf(1 << 30), library));
  HEDDLE_TRY(publish(store, "sliding_window", "left", planOf(LaunchExpr::param(0)), library));
  return store.finalise();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: heddle-host-package OUT LIBRARY\n");
    return 2;
  }
  std::ifstream file(argv[2], std::ios::binary);
  const std::string library{std::istreambuf_iterator<char>(file), {}};
  const Status status = makePackage(argv[1], library);
  if (status.isOk())
    return 0;
  std::fprintf(stderr, "heddle-host-package: error: %s\n", status.message().c_str());
  return 1;
}
