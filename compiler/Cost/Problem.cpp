#include "compiler/Cost/Problem.h"

namespace heddle::cost {

const char *nameOf(Schedule schedule) {
  static const char *const names[kSchedules] = {"gpipe", "1f1b", "zero-bubble", "dualpipe"};
  return names[int(schedule)];
}

const char *nameOf(Recompute recompute) {
  static const char *const names[kRecomputes] = {"none", "sweeps", "selective", "products", "full"};
  return names[int(recompute)];
}

const char *nameOf(ContextScheme scheme) {
  static const char *const names[kContextSchemes] = {"ring", "all-gather", "ulysses"};
  return names[int(scheme)];
}

std::string Layout::str() const {
  std::string text = "tensor " + std::to_string(tensor) + ", pipeline " + std::to_string(pipeline);
  if (pipeline > 1)
    text +=
        std::string(" (") + nameOf(schedule) + (virtualStages > 1 ? " x " + std::to_string(virtualStages) : "") + ")";
  text += ", context " + std::to_string(context);
  if (context > 1)
    text += std::string(" (") + nameOf(scheme) + ")";
  text += ", data " + std::to_string(data);
  if (zero > 0)
    text += " (ZeRO " + std::to_string(zero) + ")";
  if (expert > 1)
    text += ", expert " + std::to_string(expert);
  text += ", micro-batch " + std::to_string(microBatch) + ", recompute " + nameOf(recompute);
  if (offloadsOptimizer || offloadsActivations)
    text += std::string(", ") + (offloadsOptimizer ? "optimizer" : "") +
            (offloadsOptimizer && offloadsActivations ? " and " : "") + (offloadsActivations ? "activations" : "") +
            " in host memory";
  return text;
}

} // namespace heddle::cost
