// The parameter block of the sm90 forward kernel: its layout is described to the runtime by the slots of the launch
// plan, change both together. Tensor maps come by operand (q, k, v, factors of keys), by distinct rate of that operand, and for each
// rate first the map of the rows that all residues have, then that of the residues below seqlen mod rate, which have
// one row more (rate 1 everywhere: one map). Dimensions: dim, row number in its class, residue, head, batch. Beside
// key-major values keys have rate 1: k has a map of its even keys and one of the odd ones, v one of key, dim, 1, head, batch.
#pragma once

#include "Forward/row_range.cuh"
#include "Ptx/tensor_copy.cuh"
#include "Shared/pattern_context.cuh"
#include "Shared/rate_maps.cuh"
#include "Shared/sm90_block.cuh"

namespace heddle {

// Where the tensor maps of each operand begin.
template <class Traits> struct ForwardMaps : Traits {
  static constexpr int kQueryMaps = 0;
  static constexpr int kKeyMaps = kQueryMaps + Traits::kQueryRateCount * Traits::kMapsPerRate;
  static constexpr int kMapsOfKeys = Traits::kKeyRateCount * Traits::kMapsPerRate;
  static constexpr int kValueMaps = kKeyMaps + (Traits::kAreKeyMajor ? kKeyHalves : kMapsOfKeys);
  static constexpr int kFactorMaps = kValueMaps + (Traits::kAreKeyMajor ? 1 : kMapsOfKeys); // of pairs
  static constexpr int kMapCount = kFactorMaps + (Traits::kArePairs ? Traits::kKeyRateCount * Traits::kMapsPerRate : 0);
};

// What elements are multiplied by, for each (batch, head) of q and (batch, kv head) of k and v; null: 1. With kScaleRows of
// q and k for each block of so many of its rows. Elements that have none say nothing of them.
template <bool AreScaled> struct Descales {};
template <> struct Descales<true> {
  const float *descaleQ, *descaleK, *descaleV;
  // pair, kvPair: numbers of (batch, head) and (batch, kv head).
  DEV float ofScores(int32_t pair, int32_t kvPair) const { return at(descaleQ, pair) * at(descaleK, kvPair); }
  DEV float ofValues(int32_t kvPair) const { return at(descaleV, kvPair); }

private:
  DEV static float at(const float *factors, int32_t place) { return factors ? factors[place] : 1.f; }
};

// What pairs of each (batch, head, row) of q are to be multiplied by; that of k and v comes through maps.
template <bool ArePairs> struct QueryFactors {};
template <> struct QueryFactors<true> {
  const float *queryFactors;
};

// Where blocks keep totals of the output (sm90_totals.cuh), if not in shared memory.
template <bool InWorkspace> struct TotalsPlace {};
template <> struct TotalsPlace<true> {
  float *totals;
};

// Where values lie that are turned over once, and where they come to lie (turned_values.cuh).
template <bool AreTurned> struct TurnedPlace {};
template <> struct TurnedPlace<true> {
  const char *values;     // [batch, key, kv head, dim]
  char *turned;           // [batch, kv head, dim, key]
  int64_t valueStride[3]; // of values: batch, row, head; in bytes
  uint32_t *turnedMarks;  // a word that counts, zero at the start, and from kFirstMark on the marks
  int32_t sectionPairs;   // (batch, kv head) pairs whose keys items want side by side
};

template <class K>
struct Sm90ForwardParams : OperandsOf<typename K::Pattern>,
                           PassRows<K>,
                           Descales<K::kIsScaled>,
                           QueryFactors<K::kArePairs>,
                           TotalsPlace<(K::kTotalsInWorkspace > 0)>,
                           TurnedPlace<K::kTurnsValues> {
  TensorMap maps[K::kMapCount];
  void *out;
  float *lse;
  const float *carryOut;
  const float *carryLse;
  uint32_t *workspace;  // what blocks tell each other: sm90_split_kv.cuh
  int64_t outStride[3]; // batch, row, head; in elements
  int32_t batch, heads, kvHeads, seqlenQ, seqlenK, qOrigin, kOrigin;
  float scaleLog2;
  int32_t items;  // batch * heads * items per head
  int32_t raster; // (batch, head) pairs whose query tiles run side by side
  int32_t param[kArgumentWords<typename K::Pattern>];
};

template <class K> DEV int32_t rasterPairs(const Sm90ForwardParams<K> &p) { return p.raster; }

} // namespace heddle
