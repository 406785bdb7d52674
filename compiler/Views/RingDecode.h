// Owns the arithmetic of `heddle ring decode`: what few queries over a cache of keys take, whose keys lie on the ranks of a
// group in equal parts one behind the other, beside the same with all keys on one rank, or with heads of all keys on each.
// Nothing here is measured.
//
// With K(r) the bytes of k and v on rank r that some query keeps, each once for the heads that share it, and F(r) the FLOPs of
// the queries on them, a rank computes for
//   C(r) = a launch + max(K(r) / (0.93 of the memory of the data sheet), F(r) / (0.35 of the rate of forward kernels)),
// with 0.85 for 0.93 where one sequence is so short that clusters of blocks share its heads (cluster_layout.cuh), which is what the decode kernels of an H200 take (docs/serving.md), within 5% from 16k keys on:
//   keys    the slowest C(r), a message with the results of each rank to all others, 4 (value_dim + 1) bytes for each head
//           of a query, and their merge
//   heads   C of all keys and heads / P heads, where P divides the heads of k and v, and a message with results
//   one     C of everything on one rank
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Views/RingPlan.h"

namespace heddle::views {

struct DecodeShare {
  attn::IndexRange keys;
  double keptBytes = 0; ///< of k and v, all sequences
  double ms = 0;
};

struct DecodeScheme {
  std::string name;
  std::optional<double> ms; ///< none: see whyNot
  std::string whyNot = {};
};

struct DecodeTimes {
  std::vector<DecodeShare> shares; ///< by rank, where keys are shared
  bool isExact = true;             ///< false: some of the kept keys may be kept by no query
  double gbps = 0;                 ///< at which the first rank reads its keys
  double messageMs = 0, mergeMs = 0;
  double receivedBytes = 0;          ///< by each rank, of the others' results
  std::vector<DecodeScheme> schemes; ///< keys, heads, one
  size_t best = 0;                   ///< index into schemes, of the one that takes least
};

/// `request`: seqlenQ queries of each sequence, the last positions of its seqlenK keys; ranks; rates of links and the GPU.
/// invalidArgument: fewer keys than ranks. unsupported: a tensor that a mask reads is not given.
Result<DecodeTimes> decodeTimes(const PatternFile &file, const RingRequest &request);

std::string decodeText(const PatternFile &file, const RingRequest &request, const DecodeTimes &times);

} // namespace heddle::views
