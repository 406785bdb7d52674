// Gradients of what scores read of the pattern's arguments: of every pair P (dP - delta) times the derivative of its
// score by the argument, added to the element that the pair reads, in fp32. What one element gets is summed in a lane,
// then in a warp, as far as the element shows: over all tiles of a head where no position chooses it, over a tile where
// one axis does; of tables by distance where neighbours on a diagonal read the same. Launches clear before.
// Traits: of gradient_pointers.cuh, and for each gradient in kGradientIsStored[] 1 where every pair has an
// element of its own, in kGradientIsShared[] 1 where pairs of a tile share them. Without any nothing here adds to a
// kernel.
#pragma once

#include "Backward/gradient_pointers.cuh"
#include "Ptx/memory.cuh"
#include "Shared/pattern_context.cuh"

namespace heddle {

template <class K, int Number> struct GradientOf : K::Pattern::template Gradient<K::kGradientOf[Number]> {
  using Base = typename K::Pattern::template Gradient<K::kGradientOf[Number]>;
  static constexpr bool kIsOfHead = !Base::kReadsQuery && !Base::kReadsKey;
  static constexpr bool kIsStored = K::kGradientIsStored[Number];
  static constexpr bool kIsShared = K::kGradientIsShared[Number];
};

// Derivatives by the arguments, where scores decide them: kept from the scores of a tile to its dS.
template <int Tiles, int Count> struct ArgumentFactors {
  float of[Count][Tiles][4];
};
template <int Tiles> struct ArgumentFactors<Tiles, 0> {};

// The gradient of elements that one head reads everywhere is summed over its tiles.
template <int Count> struct SumsOf {
  float of[Count];
};
template <> struct SumsOf<0> {};

template <class Gradient, class Place> DEV float derivativeAt(const Place &place, int n, int slot, float score) {
  return Gradient::derivative(place.context, place.queryPosition(n, slot), place.keyPosition(n, slot),
                              place.document(n, slot), score);
}

template <class Gradient, class Place> DEV int64_t elementAt(const Place &place, int n, int slot) {
  return Gradient::place(place.context, place.queryPosition(n, slot), place.keyPosition(n, slot),
                         place.document(n, slot));
}

// Scores before the chain.
template <int Number = 0, class Factors, class Place, int Tiles>
DEV void keepArgumentFactors(Factors &factors, const float (&scores)[Tiles][4], const Place &place, float scale) {
  using K = typename Place::Kernel;
  if constexpr (Number < K::kGradientCount) {
    if constexpr (GradientOf<K, Number>::kReadsScore) {
#pragma unroll
      for (int n = 0; n < Tiles; ++n)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          factors.of[Number][n][slot] = derivativeAt<GradientOf<K, Number>>(place, n, slot, scores[n][slot] * scale);
    }
    keepArgumentFactors<Number + 1>(factors, scores, place, scale);
  }
}

// Over the lanes that differ in the bits of Lanes.
template <int Lanes> DEV float sumOfLanes(float value) {
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2)
    if (Lanes & distance)
      value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

DEV void addToElement(float *to, int64_t element, float value) { ptx::addGlobal4(to + element, value != 0.f, value); }

template <int Tiles> DEV float sumOfTile(const float (&values)[Tiles][4]) {
  float sum = 0.f;
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
    sum += values[n][0] + values[n][1] + (values[n][2] + values[n][3]);
  return sum;
}

// Elements of keys: a row of the tile each. Lanes 4 r to 4 r + 3 have row r.
template <class Gradient, class Place, int Tiles>
DEV void addOfKeys(float *to, const float (&values)[Tiles][4], const Place &place) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = 0.f;
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
      sum += values[n][2 * half] + values[n][2 * half + 1];
    sum = sumOfLanes<3>(sum);
    addToElement(to, elementAt<Gradient>(place, 0, 2 * half), threadIdx.x % 4 == 0 ? sum : 0.f);
  }
}

// Elements of queries: a column of the tile each.
template <class Gradient, class Place, int Tiles>
DEV void addOfQueries(float *to, const float (&values)[Tiles][4], const Place &place) {
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const float sum = sumOfLanes<28>(values[n][e] + values[n][2 + e]);
      addToElement(to, elementAt<Gradient>(place, n, e), threadIdx.x % 32 < 4 ? sum : 0.f);
    }
}

// With the lane whose number differs in the bits of Lanes, where it has the same element. One head has fewer than 2^32.
template <int Lanes> DEV float mergedWithLane(float value, uint32_t element) {
  const float other = __shfl_xor_sync(0xffffffffu, value, Lanes);
  const uint32_t of = __shfl_xor_sync(0xffffffffu, element, Lanes);
  const bool isSecond = (threadIdx.x % 32) > (threadIdx.x % 32 ^ Lanes);
  return of != element ? value : isSecond ? 0.f : value + other;
}

// Rows 2 further and columns 2 further, in the next lane of the row, lie on the same diagonal; so do 4 and 4.
DEV void addMerged(float *to, int64_t element, float value) {
  const uint32_t word = static_cast<uint32_t>(element);
  addToElement(to, element, mergedWithLane<18>(mergedWithLane<9>(value, word), word));
}

template <class Gradient, class Place, int Tiles> DEV bool readsOneElement(const Place &place) {
  const uint32_t first = __shfl_sync(0xffffffffu, static_cast<uint32_t>(elementAt<Gradient>(place, 0, 0)), 0);
  bool isOne = true;
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      isOne &= static_cast<uint32_t>(elementAt<Gradient>(place, n, slot)) == first;
  return __all_sync(0xffffffffu, isOne);
}

// Elements that pairs share, as those of a table by distance: a tile far from its steps reads one. Row 8 of column 8 n
// + 8 lies on the diagonal of row 0 and column 8 n.
template <class Gradient, class Place, int Tiles>
DEV void addShared(float *to, const float (&values)[Tiles][4], const Place &place) {
  if (readsOneElement<Gradient, Place, Tiles>(place)) {
    const float sum = sumOfLanes<31>(sumOfTile(values));
    return addToElement(to, elementAt<Gradient>(place, 0, 0), threadIdx.x % 32 == 0 ? sum : 0.f);
  }
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    addMerged(to, elementAt<Gradient>(place, 0, 2 + e), values[0][2 + e]);
#pragma unroll
    for (int n = 0; n < Tiles; ++n) {
      const int64_t element = elementAt<Gradient>(place, n, e);
      float value = values[n][e];
      if (n + 1 < Tiles) {
        const int next = n + 1 < Tiles ? n + 1 : n;
        const int64_t other = elementAt<Gradient>(place, next, 2 + e);
        value += other == element ? values[next][2 + e] : 0.f;
        addToElement(to, other, other == element ? 0.f : values[next][2 + e]);
      }
      addMerged(to, element, value);
    }
  }
}

// Every pair of a head has its own element.
template <class Gradient, class Place, int Tiles>
DEV void addOfPairs(float *to, const float (&values)[Tiles][4], const Place &place) {
#pragma unroll
  for (int n = 0; n < Tiles; ++n)
#pragma unroll
    for (int slot = 0; slot < 4; ++slot) {
      float *element = to + elementAt<Gradient>(place, n, slot);
      if constexpr (Gradient::kIsStored)
        ptx::storeGlobal4(element, values[n][slot] != 0.f, __float_as_uint(values[n][slot]));
      else
        ptx::addGlobal4(element, values[n][slot] != 0.f, values[n][slot]);
    }
}

// `products` are P (dP - delta) of a tile, 0 where a pair is not kept: a derivative may be anything there.
template <int Number = 0, class Params, class Sums, class Factors, class Place, int Tiles>
DEV void addToArguments(const Params &p, Sums &sums, const float (&products)[Tiles][4], const Factors &factors,
                        const Place &place) {
  using K = typename Place::Kernel;
  if constexpr (Number < K::kGradientCount) {
    using Gradient = GradientOf<K, Number>;
    float values[Tiles][4];
#pragma unroll
    for (int n = 0; n < Tiles; ++n)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) {
        float factor;
        if constexpr (Gradient::kReadsScore)
          factor = factors.of[Number][n][slot];
        else
          factor = derivativeAt<Gradient>(place, n, slot, 0.f);
        values[n][slot] = products[n][slot] == 0.f ? 0.f : products[n][slot] * factor;
      }
    if constexpr (Gradient::kIsOfHead)
      sums.of[Number] += sumOfTile(values);
    else if constexpr (!Gradient::kReadsQuery)
      addOfKeys<Gradient>(p.gradient[Number], values, place);
    else if constexpr (!Gradient::kReadsKey)
      addOfQueries<Gradient>(p.gradient[Number], values, place);
    else if constexpr (Gradient::kIsShared)
      addShared<Gradient>(p.gradient[Number], values, place);
    else
      addOfPairs<Gradient>(p.gradient[Number], values, place);
    addToArguments<Number + 1>(p, sums, products, factors, place);
  }
}

// The tiles of the head are done. All lanes of a warp call together.
template <class K, int Number = 0, class Sums>
DEV void leaveArgumentSums(const ParamsOf<K> &p, const Sums &sums, int32_t batch, int32_t head) {
  if constexpr (Number < K::kGradientCount) {
    using Gradient = GradientOf<K, Number>;
    if constexpr (Gradient::kIsOfHead) {
      const float sum = sumOfLanes<31>(sums.of[Number]);
      const int64_t element = Gradient::place(makeContext(p, batch, head), 0, 0, 0);
      addToElement(p.gradient[Number], element, threadIdx.x % 32 == 0 ? sum : 0.f);
    }
    leaveArgumentSums<K, Number + 1>(p, sums, batch, head);
  }
}

// What a warp adds up over its tiles, those of a head after each other.
template <class K> class ArgumentGradients {
  using Params = ParamsOf<K>;
  using Sums = SumsOf<K::kGradientCount>;

public:
  DEV ArgumentGradients(const Params &p, int32_t batch, int32_t firstHead)
      : p(p), batch(batch), head(firstHead), sums() {}

  // As addToArguments; `ofTile` is uniform.
  template <int Tiles, class Factors, class Place>
  DEV void add(int32_t ofTile, const float (&products)[Tiles][4], const Factors &factors, const Place &place) {
    if (K::kGradientCount > 0 && ofTile != head) {
      leave();
      head = ofTile;
      sums = Sums();
    }
    addToArguments(p, sums, products, factors, place);
  }
  DEV void leave() const { leaveArgumentSums<K>(p, sums, batch, head); }

private:
  const Params &p;
  int32_t batch, head;
  Sums sums;
};

} // namespace heddle
