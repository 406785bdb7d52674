//===- Addresses.h - what the driver knows about addresses and streams ------===//
// Owns the questions that are too slow for a launch: whether this GPU can reach the memory of a call, asked once when
// the call is prepared, and whose stream it was, asked after a launch was refused.
#ifndef HEDDLE_RUNTIME_DEVICE_ADDRESSES_H
#define HEDDLE_RUNTIME_DEVICE_ADDRESSES_H

#include "runtime/Device/LoadedKernel.h"

namespace heddle {

// invalidArgument if the driver is sure that kernels in this context cannot reach one of the addresses: memory of
// another GPU without access from this one, memory that was freed, host memory that no GPU sees. The context is
// current.
Status checkAddresses(const LoadedKernel &kernel, const CallInputs &inputs);

// `failure`, or invalidArgument if the stream belongs to another context than the kernel. `code` is what the driver
// said.
Status explainRefusal(const LoadedKernel &kernel, cuda::Stream stream, cuda::Code code, Status failure);

} // namespace heddle

#endif
