// The tables. bench/results is of H200s, docs/kernels.md says how its rates are measured.
#include "compiler/Cost/Rates.h"

#include <cmath>
#include <cstdio>

namespace heddle::cost {
namespace {

constexpr double kProducts = 0.70, kFp8Products = 0.58, kMemory = 0.85, kInside = 0.78, kBetween = 0.85;

struct MeasuredRate {
  AttentionKernel kernel;
  std::string_view gpus; ///< between blanks
  std::string_view pattern;
  int64_t headDim;
  double keysOfRow;         ///< kept, on average
  double forward, backward; ///< 0: not measured
  std::string_view source;
};

constexpr std::string_view kHopper = " h100 h200 ", kAmpere = " a100 ";
using Kernel = AttentionKernel;
constexpr MeasuredRate kMeasured[] = {
    {Kernel::heddle, kHopper, "causal", 128, 1024, 600, 0, "causal_2k_d128, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "causal", 128, 4096, 768, 640, "causal_8k_d128, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "causal", 128, 16384, 805, 702, "causal_32k_d128, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "causal", 64, 4096, 614, 563, "causal_8k_d64, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "causal", 256, 4096, 796, 499, "causal_8k_d256, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "full", 128, 8192, 798, 662, "dense_8k_d128, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "sliding_window", 128, 1024, 648, 457, "win1k_128k, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "sliding_window", 128, 4096, 787, 0, "win4k_1m, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "sliding_window", 64, 1024, 450, 0, "1M tokens, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "dilated_window", 128, 1024, 720, 537, "dilwin_32k, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "dilated_window", 64, 256, 360, 0, "1M tokens, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "longnet", 64, 1536, 428, 0, "128k tokens, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "longnet_large", 128, 4096, 564, 231, "32k tokens, 16 heads, heddle tune on an H200"},
    {Kernel::heddle, kHopper, "longnet_large", 64, 4096, 398, 0, "32k tokens, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "longnet_base", 64, 4096, 211, 0, "32k tokens, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "random_blocks", 128, 3328, 523, 622,
     "bsparse10_32k, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "random_blocks", 64, 1664, 366, 0, "32k tokens, bench/results/h200-side-by-side.md"},
    {Kernel::heddle, kHopper, "longformer", 64, 640, 335, 279, "longformer_32k, bench/results/h200-tuned.md"},
    {Kernel::heddle, kHopper, "document", 128, 8192, 684, 581, "document_32k, bench/results/h200-side-by-side.md"},
    {Kernel::flash3, kHopper, "causal", 128, 8192, 620, 0, "FlashAttention-3 (arXiv:2407.08608), figure 5"},
    {Kernel::flash3, kHopper, "causal", 128, 4096, 0, 632, "causal_8k_d128_backward, bench/results/h200-backward.md"},
    {Kernel::flash3, kHopper, "causal", 128, 16384, 0, 665, "causal_32k_d128_backward, bench/results/h200-backward.md"},
    {Kernel::cudnn, kHopper, "causal", 128, 4096, 611, 522, "causal_8k_d128, bench/results/h200-tuned.md"},
    {Kernel::cudnn, kHopper, "causal", 128, 16384, 604, 552, "causal_32k_d128, bench/results/h200-tuned.md"},
    {Kernel::cudnn, kHopper, "causal", 192, 2048, 611, 522, "as head dim 128"},
    {Kernel::flash2, kHopper, "causal", 128, 4096, 323, 282, "causal_8k_d128, bench/results/h200-tuned.md"},
    {Kernel::flash2, kHopper, "causal", 128, 16384, 301, 287, "causal_32k_d128, bench/results/h200-tuned.md"},
    {Kernel::flash2, kAmpere, "causal", 128, 4096, 200, 170, "FlashAttention-2 (arXiv:2307.08691), figures 4 to 6"},
};

constexpr double kGuessForward = 0.65, kGuessBackward = 0.55;

std::string wordOf(AttentionKernel kernel) { return attentionKernelNames()[size_t(kernel)]; }

std::string guessNote(const RateQuestion &question, const std::string &what) {
  char rates[96];
  std::snprintf(rates, sizeof rates, "%g%% and %g%% of the %.4g TFLOP/s of the data sheet", kGuessForward * 100,
                kGuessBackward * 100, question.sheetTflops);
  return "assumed: no rate of " + what + " on " + question.gpu + ", " + rates + " meanwhile";
}

} // namespace

const Efficiency &efficiency() {
  static const Efficiency values = {kProducts, kFp8Products, kMemory, kInside, kBetween};
  return values;
}

const std::vector<EfficiencySource> &efficiencySources() {
  static const std::vector<EfficiencySource> rows = {
      {"products",
       "8192^3 bf16 product of normal numbers on H200s, 695 to 805 of 989 TFLOP/s by card and heat: docs/kernels.md",
       kProducts},
      {"fp8_products",
       "DeepGEMM on H800, mean of products of 4,096 rows with at least 1,536 inner, 1,147 of 1,979 TFLOP/s: its README",
       kFp8Products},
      {"memory", "BabelStream triad on an A100, 1.73 of 2.04 TB/s", kMemory},
      {"inside_link", "NCCL on 8 A100, 233 of 300 GB/s each way: nccl-tests; 370 of 450 on H100: NVIDIA/nccl-tests#212",
       kInside},
      {"between_link", "DeepEP, 40 to 43 of 50 GB/s over InfiniBand: arXiv:2505.09343, figure 7", kBetween},
  };
  return rows;
}

const std::vector<std::string> &attentionKernelNames() {
  static const std::vector<std::string> names = {"heddle", "flash3", "flash2", "cudnn", "materialised"};
  return names;
}

Result<AttentionKernel> parseAttentionKernel(const std::string &name) {
  const std::vector<std::string> &names = attentionKernelNames();
  for (size_t index = 0; index < names.size(); ++index)
    if (names[index] == name)
      return AttentionKernel(index);
  std::string known;
  for (const std::string &word : names)
    known += (known.empty() ? "" : ", ") + word;
  return Status::invalidArgument("expected one of " + known + ", got '" + name + "'");
}

AttentionRate attentionRate(const RateQuestion &question) {
  AttentionRate rate = {question.sheetTflops * kGuessForward, question.sheetTflops * kGuessBackward, true, ""};
  if (question.kernel == AttentionKernel::materialised)
    return {0, 0, false, "scores in memory: products and sweeps"};
  const MeasuredRate *forward = nullptr, *backward = nullptr;
  const auto distance = [&](const MeasuredRate &row) {
    return std::fabs(std::log(row.keysOfRow / question.keysOfRow));
  };
  const auto take = [&](const MeasuredRate *&best, const MeasuredRate &row) {
    if (!best || distance(row) < distance(*best))
      best = &row;
  };
  for (const MeasuredRate &row : kMeasured) {
    const bool isOfGpu = row.gpus.find(" " + question.gpu + " ") != std::string_view::npos;
    if (row.kernel != question.kernel || row.pattern != question.pattern || row.headDim != question.headDim || !isOfGpu)
      continue;
    if (row.forward > 0)
      take(forward, row);
    if (row.backward > 0)
      take(backward, row);
  }
  const std::string what =
      wordOf(question.kernel) + " kernels for " + question.pattern + ", head dim " + std::to_string(question.headDim);
  rate.forward = forward ? forward->forward : rate.forward;
  rate.backward = backward ? backward->backward : rate.backward;
  rate.isGuess = !forward || !backward;
  if (!forward && !backward)
    rate.note = guessNote(question, what);
  else if (!forward)
    rate.note = guessNote(question, "forward " + what) + "; backward measured: " + std::string(backward->source);
  else if (!backward)
    rate.note = guessNote(question, "backward " + what) + "; forward measured: " + std::string(forward->source);
  else
    rate.note = "measured: " + std::string(forward->source);
  return rate;
}

} // namespace heddle::cost
