#include "codegen/Config/SmemLayout.h"

#include <cassert>

namespace heddle {

int64_t SmemLayout::append(std::string name, int64_t stageBytes, int64_t stages) {
  assert(!find(name) && "a region is placed once");
  const int64_t alignedBytes = (stageBytes + alignment - 1) / alignment * alignment;
  placed.push_back({std::move(name), total, alignedBytes, stages});
  total = placed.back().endBytes();
  return placed.back().offsetBytes;
}

const SmemRegion *SmemLayout::find(std::string_view name) const {
  for (const SmemRegion &region : placed)
    if (region.name == name)
      return &region;
  return nullptr;
}

} // namespace heddle
