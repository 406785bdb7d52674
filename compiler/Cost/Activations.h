// Owns how many bytes of a token and a layer are kept for the backward pass: of attention its input, q, k, v and out; of an
// ffn its input and what the activation function takes and gives; of norms their input. Recompute keeps the input of a
// layer, of products what attention gives too.
#pragma once

#include "compiler/Cost/Problem.h"

namespace heddle::cost {

/// What one token takes in one layer, on one rank of the tensor group.
double activationBytes(const CostProblem &problem, const Layout &layout);

} // namespace heddle::cost
