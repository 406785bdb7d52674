// Owns how a rank follows a plan: rows of keys that arrive are put into windows, each launch of the pattern of parts meets
// the rank's own rows with one window, and what follows on the same rows continues by the carry. While one step computes,
// what the next one needs is under way.
#pragma once

#include "runtime/Core/CallShape.h"
#include "runtime/Core/GroupPlan.h"
#include "runtime/Distributed/Agreement.h"
#include "runtime/Distributed/AgreementText.h"
#include "runtime/Distributed/ShardDevice.h"
#include "runtime/Distributed/Transport.h"

namespace heddle {

// Arguments of heddle.h with the rank's own rows: its ranges, one behind the other, in q, k, v, out, lse and what
// gradients read and write; sizes in them are those of the rank. q_origin and k_origin are 0. d_q, d_k and d_v are fp32
// and written completely. Operands are those of the pattern; the sizes of the
// whole are the plan's.
struct GroupRequest {
  const GroupPlan &plan;
  GroupDigests digests; // of the plan
  Kind kind;
  CallElements elements;
  heddle_attention_args args;
};

// Of a launch of the request: out may be fp32, whatever the inputs are. Gradients are added to, but d_q where it is of q's type.
inline KindText kindOf(const GroupRequest &request, bool hasOutOfFloats) {
  const DType inputs = request.elements.q;
  KindText text = KindText::of(request.kind,
                               CallElements(inputs, hasOutOfFloats ? DType::fp32 : inputs, request.elements.precision));
  if (request.kind.isBackward())
    text.kind.adds = request.args.d_q.dtype == HEDDLE_FP32 ? Adds::all : Adds::keys;
  return text;
}

// What a rank needs beside its arguments. Failures: the rank's tensors do not fit the plan; a launch is refused.
Result<uint64_t> groupWorkspace(const GroupRequest &request, int32_t rank, ShardDevice &device);

// Enqueues everything; what is written is there when the compute queue is over. unavailable: a rank is lost, the message
// names it and the step. Every rank of the group calls it, for the same calls in the same order.
Status runGroupCall(const GroupRequest &request, Transport &transport, ShardDevice &device, Agreements &agreed);

} // namespace heddle
