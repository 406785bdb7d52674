// Owns which things of a call must be the same on every rank, in the words of people who are told where they differ.
#pragma once

#include <string>

namespace heddle {

struct GroupPlan;
struct GroupRequest;

// What stands for a plan where ranks compare it. Made once for a plan, as it may be long: calls are many.
struct GroupDigests {
  std::string plan, layout; // of its text; of whose rows are where

  static GroupDigests of(const GroupPlan &plan, const std::string &text);
};

// For agree(). The version comes first, as another one may have other lines; operands have the numbers of the pattern.
std::string agreementOf(const GroupRequest &request);

} // namespace heddle
