#include "compiler/Measure/DeviceProblem.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace heddle {
namespace {

struct NamedTensor {
  const char *name;
  const HostTensor &first, &again;
};

const std::byte *elementAt(const HostTensor &tensor, int64_t index) {
  return tensor.data.data() + index * dtypeBytes(tensor.dtype);
}

/// "out[0, 5, 3, 1]"
std::string placeOf(const NamedTensor &tensor, int64_t index) {
  std::vector<int64_t> place;
  for (auto size = tensor.first.shape.rbegin(); size != tensor.first.shape.rend(); ++size) {
    place.insert(place.begin(), index % *size);
    index /= *size;
  }
  return tensor.name + shapeText(place);
}

/// "0.25 (bits 0x3e80)"
std::string valueAt(const HostTensor &tensor, int64_t index) {
  uint32_t bits = 0;
  int bytes = static_cast<int>(dtypeBytes(tensor.dtype));
  std::memcpy(&bits, elementAt(tensor, index), bytes);
  char text[64];
  std::snprintf(text, sizeof text, "%.9g (bits 0x%0*x)", tensor.get(index), 2 * bytes, bits);
  return text;
}

/// DeviceProblem's poison is a NaN that no instruction makes: its sign is set.
bool isPoison(const HostTensor &tensor, int64_t index) {
  const std::byte *element = elementAt(tensor, index);
  return std::all_of(element, element + dtypeBytes(tensor.dtype),
                     [](std::byte byte) { return byte == std::byte{0xff}; });
}

Status checkWritten(const NamedTensor &tensor) {
  for (int64_t i = 0, end = tensor.first.elements(); i < end; ++i)
    if (isPoison(tensor.first, i))
      return Status::invalidArgument("launch 1 never wrote " + placeOf(tensor, i));
  return {};
}

Status checkEqual(const NamedTensor &tensor, int64_t launch, int64_t count) {
  if (tensor.first.data == tensor.again.data)
    return {};
  int64_t bytes = dtypeBytes(tensor.first.dtype), differing = 0, place = 0;
  for (int64_t i = tensor.first.elements(); i-- > 0;)
    if (std::memcmp(elementAt(tensor.first, i), elementAt(tensor.again, i), bytes) != 0) {
      place = i;
      ++differing;
    }
  return Status::invalidArgument("launch " + std::to_string(launch) + " of " + std::to_string(count) +
                                 " gave other bits than launch 1: " + placeOf(tensor, place) + " is " +
                                 valueAt(tensor.again, place) + ", was " + valueAt(tensor.first, place) + "; " +
                                 std::to_string(differing) + " elements of " + tensor.name + " differ");
}

bool has(const std::vector<Role> &roles, Role role) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

/// Why the bits of sums may differ, and what did not.
std::string whyOtherSums(const Repetition &repetition, const std::vector<RoleSpec> &written) {
  std::string sums, others;
  for (const RoleSpec &role : written) {
    std::string &names = has(repetition.addedInAnyOrder, role.role) ? sums : others;
    names += (names.empty() ? "" : ", ") + std::string(role.name);
  }
  return "; this configuration adds up " + sums + " in the order in which its blocks come" +
         (others.empty() ? "" : ", all launches gave the same bits of " + others);
}

} // namespace

Status repeatLaunch(DeviceProblem &problem, const std::function<Status()> &launch, const Repetition &repetition,
                    RoleTensors &results) {
  RoleTensors again;
  Status otherSums;
  for (int64_t number = 1; number <= repetition.count; ++number) {
    HEDDLE_TRY(problem.poison());
    HEDDLE_TRY(launch());
    HEDDLE_TRY(problem.download(number == 1 ? results : again));
    for (const RoleSpec &role : problem.writtenRoles()) {
      const NamedTensor tensor{role.name, results.of(role.role), again.of(role.role)};
      const Status status = number == 1 ? checkWritten(tensor) : checkEqual(tensor, number, repetition.count);
      if (number == 1 || !has(repetition.addedInAnyOrder, role.role))
        HEDDLE_TRY(status);
      else if (otherSums.isOk())
        otherSums = status;
    }
  }
  if (otherSums.isOk())
    return {};
  return Status::invalidArgument(otherSums.message() + whyOtherSums(repetition, problem.writtenRoles()));
}

} // namespace heddle
