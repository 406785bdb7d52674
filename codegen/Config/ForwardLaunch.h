// Owns the host side of the forward kernels' parameter block and work items
// (docs/architecture.md, sections 3 and 4). Change it together with `KernelParams` in the device
// skeletons.
#pragma once

#include "codegen/Config/PatternRates.h"
#include "runtime/Core/LaunchPlan.h"

namespace heddle {

struct KernelRequest;

/// A plan without launches that serves the calls of the request.
LaunchPlan planFor(const KernelRequest &request, int64_t keyOriginStep);

/// Query tiles of one head: the maximum over the variants of R * ceil(ceil(rows / R) / block_m), rows those of the call
/// or, of a pass, of a round. Blocks beyond a head's own count leave at once.
LaunchExpr itemsPerHead(const KernelRequest &request, int64_t blockM);

/// Position of query 0 as the request's rule says.
LaunchExpr qOriginExpr(QOriginRule rule);

/// Key 0 must stand at a multiple of it for tiles of `blockN` keys to begin where squares of KernelRequest::grain do.
int64_t keyOriginStep(const KernelRequest &request, int64_t blockN);

/// Appends the strides of a tensor, in elements: batch, row, head.
void appendStrides(KernelLaunch &launch, Role role);

/// Appends what every forward `KernelParams` has in a row: batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin
/// and scaleLog2.
void appendCallSizes(KernelLaunch &launch, QOriginRule rule);

/// Appends the pointers to the pattern's tensors, the first fields of every forward `KernelParams`.
void appendOperands(KernelLaunch &launch, const KernelRequest &request);

/// Appends the fields of row_range.cuh, behind the pointers to tensors: nothing unless the request is of a pass.
void appendRowRange(KernelLaunch &launch, const KernelRequest &request);

/// Appends the pointers of KeyScales, which there are where k and v alone are scaled.
void appendKeyScales(KernelLaunch &launch, const KernelRequest &request);

/// Appends `param`, the last field of every forward `KernelParams`: one element where the pattern has no arguments. The
/// word of a tensor without a length is 0, and nobody has to give it.
void appendRuntimeSizes(KernelLaunch &launch, const KernelRequest &request);

/// Appends the fields of the portable `KernelParams`, in order and natural alignment.
void appendForwardParams(KernelLaunch &launch, const KernelRequest &request);

} // namespace heddle
