//===- TensorMap.h - tensor maps of a call -----------------------------------===//
// Owns the way from a TensorMapSpec and the sizes of a call to the 128 bytes that the driver encodes.
#ifndef HEDDLE_RUNTIME_DEVICE_TENSORMAP_H
#define HEDDLE_RUNTIME_DEVICE_TENSORMAP_H

#include "runtime/Device/LoadedKernel.h"

namespace heddle {

// Writes the encoded map to `slot`. A dimension of size 1 takes any stride. A refusal of the driver comes with all
// values and the limit that they break. Allocates only on failure.
Status encodeTensorMap(const LoadedKernel &kernel, const CallInputs &inputs, const TensorMapSpec &spec,
                       unsigned char *slot);

} // namespace heddle

#endif
