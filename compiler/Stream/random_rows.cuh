// random_rows.cuh - the numbers of compiler/Io/RandomTensor.h, made where they are used: the same bits as on the host, which
// tests/unit/stream_test.cpp holds it to. kElement is 0 for fp32, 1 for bf16, 2 for fp16.
#pragma once

namespace heddle_random {

typedef unsigned long long Word;

constexpr Word kStep = 0x9e3779b97f4a7c15ull;
constexpr unsigned kPerThread = 8; // elements

inline Word mix(Word x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The sums of the first and third, and of the second and fourth field of 16 bits, in 32 bits each.
inline Word pairSums(Word word) {
  constexpr Word kFields = 0x0000ffff0000ffffull;
  return (word & kFields) + ((word >> 16) & kFields);
}

// normal(element) of the stream with this base.
inline float normal(Word base, Word element) {
  const Word place = base + 3 * kStep * element;
  const Word sums = pairSums(mix(place + kStep)) + pairSums(mix(place + 2 * kStep)) + pairSums(mix(place + 3 * kStep));
  return float(int(unsigned(sums) + unsigned(sums >> 32)) - 6 * 65535) * 0x1p-16f;
}

// Rows that follow each other in a tensor: `rows` runs of `width` elements in each of `batches`.
struct Block {
  Word base, first, width, rows, rowStep, batchStep, elements; // steps in elements; elements: in all
};

// Number in the whole tensor of an element of the block.
inline Word elementOf(const Block &block, Word at) {
  const Word row = at / block.width, batch = row / block.rows;
  return block.first + batch * block.batchStep + (row - batch * block.rows) * block.rowStep + (at - row * block.width);
}

template <class Element> struct alignas(kPerThread * sizeof(Element)) Pack {
  Element values[kPerThread];
};

// Elements [8 n, 8 n + 8) of the block, as far as there are. Those of one run are found at once.
template <class Element, class Round> inline void make(const Block &block, Word n, Element *to, Round round) {
  const Word at = n * kPerThread;
  if (at >= block.elements)
    return;
  if (block.width % kPerThread == 0) {
    const Word first = elementOf(block, at);
    Pack<Element> pack;
    for (unsigned i = 0; i < kPerThread; ++i)
      pack.values[i] = round(normal(block.base, first + i));
    *reinterpret_cast<Pack<Element> *>(to + at) = pack;
    return;
  }
  for (unsigned i = 0; i < kPerThread && at + i < block.elements; ++i)
    to[at + i] = round(normal(block.base, elementOf(block, at + i)));
}

} // namespace heddle_random
