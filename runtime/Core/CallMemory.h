// Owns the rule that what a call writes meets neither what it reads nor what else it writes: rows that were written may
// be read again by then, and blocks of one launch have no order. Views of one buffer that interleave, as the gradients
// of q, k and v in one tensor of all three, are apart.
#pragma once

#include "runtime/Core/CallChecks.h"

namespace heddle {

// What a call has beside the roles of its kind.
struct MorePlaces {
  struct Place {
    int64_t number; // of an argument of the pattern
    const void *address;
    int64_t bytes; // as far as they are known
  };
  Place operands[kMaxArguments], gradients[kMaxArguments];
  int operandCount = 0, gradientCount = 0;
  void addOperand(const Place &place) { operands[operandCount++] = place; }
  void addGradient(const Place &place) { gradients[gradientCount++] = place; }
  const void *workspace = nullptr;
  int64_t workspaceBytes = 0;
};

// invalidArgument names both. Of a call that passed checkRoles, whose sizes `symbols` has; what is only read may meet
// what is only read, and what is added to is its own input. Allocates only on failure.
Status checkApart(const CallRules &rules, const heddle_attention_args &args, const LaunchSymbols &symbols,
                  const MorePlaces &more);

} // namespace heddle
