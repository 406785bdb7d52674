// Which columns of a tile a lane holds, as bits of a word. Also compiled for the host by the tests of the generated
// functions, which bring their own ptx::lowestBits.
#pragma once

#include "Ptx/scalar.cuh"

namespace heddle {

// Bit 2 n + e stands for column 8 n + e, counted from the lane's first: element e of score tile n.
struct LaneColumns {
  // The columns with a number below `limit`, which is less than 2^32 - 7.
  DEV static uint32_t below(uint32_t limit) {
    uint32_t second = limit + 6;
    asm("" : "+r"(second)); // else ptxas makes three additions of two
    return ptx::lowestBits((second >> 3) + ((second + 1) >> 3));
  }
};

} // namespace heddle
