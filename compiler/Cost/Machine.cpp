#include "compiler/Cost/Machine.h"
#include "codegen/Target/GpuModel.h"
#include "compiler/Cost/Rates.h"

#include <algorithm>

namespace heddle::cost {
namespace {

/// What data sheets say beyond GpuModel.
struct Extras {
  std::string_view name;
  double memoryGiB, watts;
};
constexpr Extras kExtras[] = {{"a100", 80, 400},
                              {"a10", 24, 150},
                              {"l40s", 48, 350},
                              {"h100", 80, 700},
                              {"h200", 141 / 1.0737, 700},
                              {"b200", 192 / 1.0737, 1000},
                              {"b300", 288 / 1.0737, 1400},
                              {"rtx3090", 24, 350},
                              {"rtx4090", 24, 450},
                              {"rtx5090", 32, 575}};

} // namespace

Result<Accelerator> findAccelerator(const std::string &name) {
  HEDDLE_ASSIGN(const GpuModel *model, findGpuModel(name));
  for (const Extras &extras : kExtras)
    if (extras.name == model->name)
      return Accelerator{std::string(model->name),
                         std::string(model->fullName),
                         model->bf16Tflops,
                         model->fp8Tflops,
                         model->bandwidthGBps,
                         extras.memoryGiB,
                         extras.watts,
                         double(model->smCount)};
  return Status::unsupported("no memory and power of the GPU '" + std::string(model->name) + "' are known here");
}

int64_t Links::inHost(const Group &group) const {
  const int64_t fitting = std::clamp<int64_t>(cluster.perHost / group.stride, 1, group.size);
  return fitting == group.size && !isInHost(group) ? std::max<int64_t>(1, fitting / 2) : fitting;
}

int64_t Links::hostsOf(const Group &group) const {
  const int64_t inside = inHost(group);
  return (group.size + inside - 1) / inside;
}

const Link &Links::widest(const Group &group) const {
  if (isInHost(group))
    return cluster.inside;
  const bool staysInPod = cluster.podGpus == 0 || group.size * group.stride <= cluster.podGpus;
  return staysInPod ? cluster.between : cluster.beyond;
}

double Links::ringRate(const Group &group) const {
  const double inside = cluster.inside.gbps * 1e9 * efficiency().insideLink;
  if (isInHost(group))
    return inside;
  return std::min(inside, widest(group).gbps * 1e9 * efficiency().betweenLink * double(inHost(group)));
}

double Links::gather(const Group &group, double bytes) const {
  if (group.size <= 1 || bytes <= 0)
    return 0;
  const double others = double(group.size - 1), hosts = double(hostsOf(group));
  // A ring in each host, and one of hosts: messages are as many as the longer way of a tree over hosts has.
  const double messages = isInHost(group) ? others : double(inHost(group) - 1) + hosts - 1;
  return bytes * others / double(group.size) / ringRate(group) + std::min(messages, 64.0) * widest(group).us * 1e-6;
}

double Links::exchange(const Group &group, double bytes) const {
  if (group.size <= 1 || bytes <= 0)
    return 0;
  const double outside = double(group.size - inHost(group)) / double(group.size),
               inside = double(inHost(group) - 1) / double(group.size);
  const double within = bytes * inside / (cluster.inside.gbps * 1e9 * efficiency().insideLink),
               beyond = outside > 0 ? bytes * outside / (widest(group).gbps * 1e9 * efficiency().betweenLink) : 0;
  return std::max(within, beyond) + widest(group).us * 1e-6;
}

double Links::send(const Group &group, double bytes) const {
  if (group.size <= 1 || bytes <= 0)
    return 0;
  const bool isNear = group.stride * 2 <= cluster.perHost;
  const Link &link = isNear ? cluster.inside : widest(group);
  return bytes / (link.gbps * 1e9 * (isNear ? efficiency().insideLink : efficiency().betweenLink)) + link.us * 1e-6;
}

} // namespace heddle::cost
