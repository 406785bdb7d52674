//===- SmemLayout.cpp - placing regions ----------------------------------------------===//
#include "codegen/Config/SmemLayout.h"

#include <algorithm>
#include <cassert>

namespace heddle {

int64_t SmemLayout::append(std::string name, int64_t stageBytes, int64_t stages) {
  return place(std::move(name), total, stageBytes, stages);
}

int64_t SmemLayout::overlay(std::string name, std::string_view over, int64_t stageBytes, int64_t stages) {
  const SmemRegion *under = find(over);
  assert(under && "the region below must be placed first");
  return place(std::move(name), under->offsetBytes, stageBytes, stages);
}

const SmemRegion *SmemLayout::find(std::string_view name) const {
  for (const SmemRegion &region : placed)
    if (region.name == name)
      return &region;
  return nullptr;
}

int64_t SmemLayout::place(std::string name, int64_t offset, int64_t stageBytes, int64_t stages) {
  assert(!find(name) && "a region is placed once");
  const int64_t alignedBytes = (stageBytes + alignment - 1) / alignment * alignment;
  placed.push_back({std::move(name), offset, alignedBytes, stages});
  total = std::max(total, placed.back().endBytes());
  return offset;
}

} // namespace heddle
