#include "codegen/Skeletons/Shared/WarpgroupShapes.h"

namespace heddle {
namespace {

std::string shapeOf(int64_t columns) {
  constexpr int64_t kOperands = 6;
  const int64_t sums = columns / 2; // of a thread
  std::string list, operands, held;
  for (int64_t i = 0; i < sums; ++i) {
    list += (i == 0 ? "%" : ", %") + std::to_string(i);
    held += ", \"+f\"(d[" + std::to_string(i / 4) + "][" + std::to_string(i % 4) + "])";
  }
  for (int64_t i = sums; i < sums + kOperands; ++i)
    operands += ", \"%" + std::to_string(i) + "\"";
  return "SHAPE(" + std::to_string(columns) + ", \"" + list + "\"" + operands + held + ")";
}

} // namespace

std::string warpgroupShapes(const std::set<int64_t> &columns) {
  std::string text = "#define HEDDLE_WARPGROUP_SHAPES(SHAPE)";
  for (int64_t size : columns)
    text += " \\\n  " + shapeOf(size);
  return text + "\n";
}

} // namespace heddle
