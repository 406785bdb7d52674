// Owns the kernel that does nothing for a while, as text that the driver compiles. Of what may begin at the same time a kernel
// that fills the GPU keeps waiting what does not begin before it, a message or a launch of few rows; behind a pause it does not.
#pragma once

#include "runtime/Distributed/AddRows.h"

#include <cstdint>
#include <string>

namespace heddle {

inline constexpr const char *kPauseName = "heddle_pause";
inline constexpr uint32_t kPauseNs = 4000; // a message of NCCL begins up to 3 us behind other kernels

// It ends, whatever the clock of the GPU does.
inline std::string pauseText() {
  return ".version 7.0\n.target sm_" + std::to_string(kAddRowsTarget) + R"(
.address_size 64
.visible .entry heddle_pause(.param .u32 ns)
{
  .reg .pred %isShort;
  .reg .b32 %ns, %left;
  .reg .b64 %begin, %now, %wanted;
  ld.param.u32 %ns, [ns];
  cvt.u64.u32 %wanted, %ns;
  mov.u32 %left, 10000;
  mov.u64 %begin, %globaltimer;
AGAIN:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %begin;
  sub.u32 %left, %left, 1;
  setp.lt.u64 %isShort, %now, %wanted;
  setp.ne.and.u32 %isShort, %left, 0, %isShort;
  @%isShort bra AGAIN;
  ret;
}
)";
}

} // namespace heddle
