#include "runtime/Distributed/RankPlaces.h"

#include "runtime/Core/SafeText.h"
#include "runtime/Distributed/RankWords.h"

#include <fstream>
#include <map>
#include <unistd.h>

namespace heddle {

std::string machineName() {
  std::string bootId;
  if (std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), bootId) && !bootId.empty())
    return bootId;
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

std::string placeOf(const Device &device) { return device.info().pciBusId + " of " + machineName(); }

Status checkPlaces(Transport &transport, const std::string &place) {
  HEDDLE_ASSIGN(const std::vector<std::string> places, transport.gather(place));
  std::map<std::string, std::vector<int32_t>> ranksAt;
  for (size_t rank = 0; rank < places.size(); ++rank)
    ranksAt[places[rank]].push_back(int32_t(rank));
  for (const auto &[name, ranks] : ranksAt)
    if (ranks.size() > 1)
      return Status::invalidArgument("join ranks: " + ranksText(ranks) + " have the same GPU, " + safeLine(name) +
                                     "; expected a GPU for each rank, such as the one whose number is the rank's");
  return {};
}

} // namespace heddle
