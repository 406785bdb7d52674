// Owns which layouts are looked at, which of them are possible, and their order by tokens per second. Everything that the
// plan leaves open is tried: tensor up to a host, every pipeline that divides the rest, and so on.
#pragma once

#include "compiler/Cost/Memory.h"
#include "compiler/Cost/StepTime.h"

#include <array>
#include <string>

namespace heddle::cost {

struct Candidate {
  Layout layout;
  StepTime time;
  MemoryUse memory;
};

/// Why a layout is none. The order is that in which they are asked.
enum class Refusal { gpus, heads, ffn, context, layers, schedule, experts, batch, ulysses, offload, memory };
inline constexpr int kRefusals = 11;

struct RefusalCount {
  int64_t count = 0;
  Layout example = {}; ///< of memory the one that lacks least
  double excess = 0;   ///< bytes, of memory
  std::string why = {};
};

struct SearchResult {
  std::vector<Candidate> best; ///< ascending in time; at most as many as asked for
  int64_t tried = 0, possible = 0;
  std::array<RefusalCount, kRefusals> refusals = {};
};

/// `most` >= 1. The attention of the problem has pairs and rates.
SearchResult search(const CostProblem &problem, size_t most);

/// Numbers of context ranks that are looked at.
std::vector<int64_t> contextsOf(const CostProblem &problem);

/// One layout; none: `why` says what it lacks.
std::optional<Refusal> refusalOf(const CostProblem &problem, const Layout &layout, std::string *why);

} // namespace heddle::cost
