// Owns how entries of a tensor with rows of queries reach launches where keys lie: what the queries of others have for the
// keys of a launch travels there beside them, as rows of a window that has no other columns.
#pragma once

#include "runtime/Core/GroupPlan.h"
#include "runtime/Distributed/CallTensors.h"
#include "runtime/Distributed/ShardDevice.h"
#include "runtime/Distributed/Transport.h"

#include <vector>

namespace heddle {

class RowEntries {
public:
  // `rows`: of the rank, by ranges; `entries`: theirs, [batch, heads, rows, keys of the whole]. Windows and messages are
  // taken of `memory`.
  RowEntries(const GroupPlan &plan, const RowTensor &tensor, int32_t rank, const std::vector<RowRange> &rows,
             int64_t batches, const void *entries, Memory &memory);

  // The tensor as a launch of the transposed walk reads it: that of its first query at `first`, at position 0 of its keys.
  struct View {
    const void *first;
    int64_t rows, columns;
  };
  View of(size_t step, const ShardLaunch &launch) const;
  // Messages of a step, for its exchange.
  Status send(size_t step, ShardDevice &device, Exchange &exchange) const;
  // What came, and own rows beside it, in front of the step's launches.
  Status place(size_t step, ShardDevice &device) const;

private:
  // Consecutive heads' rows for a launch of a step: among the sender's rows, in its message and in the launch's window.
  struct Piece {
    size_t launch;
    HeadRange heads;
    RowRun rows;
  };
  struct Letter {
    const Hop *hop;
    std::vector<Piece> pieces;
    char *message;
    uint64_t bytes;
  };
  struct StepEntries {
    std::vector<char *> windows; // by launch; none: it reads own rows where they are
    std::vector<Letter> sent, received;
  };

  const ShardStep &stepOf(size_t step, int32_t of) const { return plan.transposed.steps[step].ranks[size_t(of)]; }
  int64_t heads() const { return tensor.isOfHeads ? plan.heads : 1; }
  int64_t entryBytes() const { return tensor.isOfKeys ? tensor.rowBytes / plan.rows : tensor.rowBytes; }
  RowRange keysOf(int32_t of, const ShardLaunch &launch) const;
  int64_t widthOf(int32_t of, const ShardLaunch &launch) const; // bytes of a row of its window
  RowPlace ownRows(const RowRange &keys, int64_t width) const;
  RowPlace windowOf(size_t step, size_t launch) const;
  std::vector<HeadRows> rowsThatTravel(const Hop &hop) const;
  Letter letterOf(size_t step, const Hop &hop, Memory &memory) const;
  // Of every piece of a letter, between its message and where its rows are here.
  template <class PlaceOf>
  void addCopies(size_t step, const Letter &letter, bool isPacked, const PlaceOf &here,
                 std::vector<RowCopy> &copies) const;

  const GroupPlan &plan;
  const RowTensor &tensor;
  const int32_t rank;
  const std::vector<RowRange> rows;
  const int64_t batches;
  const char *const entries;
  std::vector<StepEntries> steps;
};

} // namespace heddle
