//===- Kernels.cpp - compiled or at home ------------------------------------------------===//
#include "Kernels.h"
#include "HostKernels.h"

#include "../unit/fake_cuda/FakeCuda.h"

#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace heddle::ranks {
namespace {

using SetKernels = void (*)(fake::KernelRun run);

SetKernels setKernels() {
  const char *path = std::getenv("HEDDLE_CUDA_DRIVER_LIBRARY");
  void *driver = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  return driver ? reinterpret_cast<SetKernels>(dlsym(driver, "fakeCudaSetKernels")) : nullptr;
}

std::string digestOf(const heddle_pattern *pattern) {
  auto info = sized<heddle_pattern_info>();
  return heddle_pattern_get_info(pattern, &info) == HEDDLE_OK ? info.digest : "";
}

} // namespace

bool isStandIn() { return setKernels() != nullptr; }

std::string callKindOf(const SceneSpec &spec, bool isBackward) {
  return std::string(isBackward ? "backward_deterministic" : "forward") + (spec.isTf32 ? "_tf32" : "");
}

std::vector<std::string> kindsOf(const SceneSpec &spec, bool isBackward, bool isOfPart) {
  std::vector<std::string> kinds = {"forward"};
  if (isBackward)
    kinds = {spec.writesQueryGradient ? "backward_accumulate_keys_deterministic" : "backward_accumulate_deterministic"};
  else if (isOfPart)
    kinds.push_back("forward_fp32_out");
  for (std::string &kind : kinds)
    kind += spec.isTf32 ? "_tf32" : "";
  return kinds;
}

std::string kernelsOf(const SceneSpec &spec) {
  std::string text = spec.pattern + "/" + std::to_string(spec.dtype) + "/" + std::to_string(spec.dim) +
                     (spec.isPlacementFree ? "/invariant" : "");
  for (const std::string &kind : kindsOf(spec, /*isBackward=*/true, /*isOfPart=*/true))
    text += "/" + kind;
  return text;
}

Kernels::Kernels(std::string folder)
    : path(std::move(folder) + (isStandIn() ? "/records-" + std::to_string(getpid()) : "/kernels") + ".db") {}

// The machine code of the processors is made here, once for all ranks.
Status Kernels::prepare(const Scene &scene, bool isComputed) {
  if (!isStandIn())
    return {};
  for (bool isOfPart : {false, true})
    for (bool isBackward : {false, true}) {
      heddle_pattern *pattern = isOfPart ? scene.part : scene.whole;
      for (const std::string &kind : kindsOf(scene.spec, isBackward, isOfPart))
        HEDDLE_TRY(publishHostKernel(path, {pattern, digestOf(pattern), kind, scene.spec.dtype, scene.spec.dim}));
      if (!isComputed)
        continue;
      const Bytes tensors = scene.share(scene.spec.rows);
      heddle_attention_args args = scene.arguments({tensors.begin(), tensors.end()}, scene.spec.rows, isBackward);
      const std::vector<heddle_operand> &operands = isOfPart ? scene.operandsOfPart : scene.operands;
      args.operands = operands.data(), args.operand_count = operands.size();
      HEDDLE_TRY(said(heddle_cpu_run(pattern, kindsOf(scene.spec, isBackward, isOfPart)[0].c_str(), &args, 1)));
      for (uint8_t *tensor : tensors)
        delete[] tensor;
    }
  return {};
}

Status Kernels::open(heddle_device *opened) {
  device = opened;
  if (const SetKernels set = setKernels()) {
    set(&runHostKernel);
    return said(heddle_store_open(path.c_str(), 0, &store));
  }
  auto options = sized<heddle_compiler_options>();
  options.database = path.c_str(), options.shipped = "", options.program = "";
  return said(heddle_compiler_open(&options, &compiler));
}

Result<heddle_kernel *> Kernels::compiled(const Scene &scene, heddle_pattern *pattern, bool isOfPart,
                                          const std::string &kind) {
  auto problem = sized<heddle_problem>();
  problem.dtype = scene.spec.dtype;
  problem.kind = kind.c_str();
  problem.head_dim = problem.value_dim = scene.spec.dim;
  problem.batch = scene.spec.batch, problem.heads = scene.spec.heads, problem.kv_heads = scene.spec.kvHeads;
  problem.seqlen_q = problem.seqlen_k = scene.spec.rows;
  const std::vector<heddle_operand> &operands = isOfPart ? scene.operandsOfPart : scene.operands;
  problem.operands = operands.data(), problem.operand_count = operands.size();
  heddle_kernel *kernel = nullptr;
  const uint32_t flags = scene.spec.isPlacementFree ? HEDDLE_BATCH_INVARIANT : 0;
  HEDDLE_TRY(said(heddle_compiler_kernel(compiler, device, pattern, &problem, flags, &kernel)));
  return kernel;
}

Result<const heddle_kernel *> Kernels::find(const Scene &scene, bool isOfPart, const std::string &kind) {
  heddle_pattern *pattern = isOfPart ? scene.part : scene.whole;
  const std::string digest = digestOf(pattern);
  const std::string key = digest + kind + std::to_string(scene.spec.dtype) + "/" + std::to_string(scene.spec.dim) +
                          (scene.spec.isPlacementFree ? "/invariant" : "");
  {
    std::lock_guard<std::mutex> lock(finding);
    if (const auto known = found.find(key); known != found.end())
      return const_cast<const heddle_kernel *>(known->second);
  }
  heddle_kernel *kernel = nullptr;
  if (compiler) {
    HEDDLE_ASSIGN(kernel, compiled(scene, pattern, isOfPart, kind));
  } else {
    auto query = sized<heddle_kernel_query>();
    query.dtype = scene.spec.dtype, query.pattern = digest.c_str(), query.kind = kind.c_str();
    query.head_dim = query.value_dim = scene.spec.dim;
    HEDDLE_TRY(said(heddle_kernel_find(store, device, &query, &kernel)));
  }
  std::lock_guard<std::mutex> lock(finding);
  return const_cast<const heddle_kernel *>(found.try_emplace(key, kernel).first->second);
}

} // namespace heddle::ranks
