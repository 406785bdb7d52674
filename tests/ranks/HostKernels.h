//===- HostKernels.h - kernels that this process runs itself --------------------------===//
// Owns records for the recording driver, and what their launches do: the parameters are a call's arguments as 64-bit words, in the
// order of the table of the kind's roles, and the call is made on the processors.
#ifndef HEDDLE_TESTS_RANKS_HOSTKERNELS_H
#define HEDDLE_TESTS_RANKS_HOSTKERNELS_H

#include "compiler/Library/heddle_compiler.h"
#include "runtime/Core/Status.h"

#include <string>

namespace heddle::ranks {

struct HostKernel {
  heddle_pattern *pattern;
  std::string digest, kind;
  int32_t dtype;
  int64_t dim;
};

// Publishes a kernel in the database, once.
Status publishHostKernel(const std::string &database, const HostKernel &kernel);

// What the driver calls.
void runHostKernel(const char *entry, const void *params);

} // namespace heddle::ranks

#endif
