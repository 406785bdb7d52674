// Owns which rows of a rank's arguments travel: tensors and arrays of a request, as walks take them.
#pragma once

#include "runtime/Core/CallArguments.h"
#include "runtime/Distributed/CallTensors.h"
#include "runtime/Distributed/GroupCall.h"
#include "runtime/Distributed/WalkRun.h"

namespace heddle {

inline int64_t bytesOf(const GroupRequest &request, Role role) {
  return dtypeBytes(request.elements.of(specOf(role).element));
}

inline WalkField fieldOf(const GroupRequest &request, Role role) {
  return {RowPlace::ofTensor(tensorOf(request.args, role), bytesOf(request, role)), false};
}

// Of fp32, with a number for each head of each row of q.
inline WalkField arrayOf(const GroupRequest &request, const float *array) {
  return {RowPlace::ofArray(array, request.args.q.size[2], request.args.q.size[1]), true};
}

// Of fp32, added to.
inline WalkField sumOf(const heddle_tensor &tensor) { return {RowPlace::ofTensor(tensor, sizeof(float)), false}; }

inline DType typeOfQueryGradient(const GroupRequest &request) {
  return request.args.d_q.dtype == HEDDLE_FP32 ? DType::fp32 : request.elements.q;
}

// Zeros, of a tensor of fp32 that is added to. invalidArgument: it has gaps.
Status clearSums(const heddle_tensor &tensor, ShardDevice &device);

} // namespace heddle
