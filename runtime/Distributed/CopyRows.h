// Owns the kernel that copies rows of several places in one launch, as text that the driver compiles: a copy of the driver's for
// each costs microseconds of the host, and leaves the GPU idle between two. A thread has 16 bytes, a row of the grid one place.
#pragma once

#include "runtime/Distributed/AddRows.h"

#include <cstdint>
#include <string>

namespace heddle {

inline constexpr const char *kCopyRowsName = "heddle_copy_rows";
inline constexpr unsigned kCopyRowsThreads = 256, kCopyRowsUnit = 16, kCopyRowsMost = 8;

// Rows of one place: pitches in bytes, the width in units.
struct CopiedRows {
  uint64_t to, from;
  int64_t toPitch, fromPitch;
  uint32_t width, height;
};
// The parameters of the kernel.
struct CopyRowsParams {
  CopiedRows rows[kCopyRowsMost];
};
static_assert(sizeof(CopiedRows) == 40 && sizeof(CopyRowsParams) == 320, "as the text below has them");

inline std::string copyRowsText() {
  return ".version 7.0\n.target sm_" + std::to_string(kAddRowsTarget) + R"(
.address_size 64
.visible .entry heddle_copy_rows(.param .align 8 .b8 all[320])
{
  .reg .pred %isOver;
  .reg .b32 %block, %thread, %place, %width, %height, %count, %row, %column, %a, %b, %c, %d;
  .reg .b64 %rows, %to, %from, %wide, %pitch, %offset;
  mov.u32 %block, %ctaid.y;
  mul.wide.u32 %offset, %block, 40;
  mov.b64 %rows, all;
  add.u64 %rows, %rows, %offset;
  ld.param.u32 %width, [%rows+32];
  ld.param.u32 %height, [%rows+36];
  mov.u32 %block, %ctaid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %place, %block, 256, %thread;
  mul.lo.u32 %count, %width, %height;
  setp.ge.u32 %isOver, %place, %count;
  @%isOver bra DONE;
  div.u32 %row, %place, %width;
  rem.u32 %column, %place, %width;
  cvt.u64.u32 %wide, %row;
  mul.wide.u32 %offset, %column, 16;
  ld.param.u64 %to, [%rows];
  ld.param.u64 %pitch, [%rows+16];
  mad.lo.u64 %to, %wide, %pitch, %to;
  add.u64 %to, %to, %offset;
  ld.param.u64 %from, [%rows+8];
  ld.param.u64 %pitch, [%rows+24];
  mad.lo.u64 %from, %wide, %pitch, %from;
  add.u64 %from, %from, %offset;
  ld.global.v4.u32 {%a, %b, %c, %d}, [%from];
  st.global.v4.u32 [%to], {%a, %b, %c, %d};
DONE:
  ret;
}
)";
}

} // namespace heddle
