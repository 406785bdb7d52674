#pragma once

#include "compiler/Oracle/AttentionOracle.h"

namespace heddle::oracle {

/// Compares rows of a result with the definition. `out` has the shape of q with value_dim, `lse` is
/// [batch, heads, seqlen_q] in fp32. A NaN counts as an infinite error.
inline VerifyReport verifyRows(const AttentionOracle &oracle, const HostTensor &out, const HostTensor &lse,
                               const std::vector<RowId> &rows) {
  const AttentionSizes &sizes = oracle.sizes();
  return compareRows(referenceRows(oracle, rows, out.dtype), [&](const RowId &id) {
    RowResult row;
    int64_t first = ((id.batch * sizes.seqlenQ + id.row) * sizes.heads + id.head) * sizes.valueDim;
    for (int64_t c = 0; c < sizes.valueDim; ++c)
      row.out.push_back(out.get(first + c));
    row.lse = lse.get((id.batch * sizes.heads + id.head) * sizes.seqlenQ + id.row);
    return row;
  });
}

} // namespace heddle::oracle
