// Owns the kernel that copies rows of several places in one launch, as text that the driver compiles: a copy of the driver's for
// each costs microseconds of the host, and leaves the GPU idle between two. A thread has a few times 16 bytes on their way at
// once, a row of the grid one place.
#pragma once

#include "runtime/Distributed/AddRows.h"

#include <cstdint>
#include <string>

namespace heddle {

inline constexpr const char *kCopyRowsName = "heddle_copy_rows";
inline constexpr unsigned kCopyRowsThreads = 256, kCopyRowsUnit = 16, kCopyRowsMost = 8;
inline constexpr unsigned kCopyRowsUnits = 4; // that a thread has at a time

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

// `before`, and for each of the units that a thread has at a time `text` with its number for every #.
inline std::string forEachUnit(std::string before, const std::string &text) {
  for (unsigned unit = 0; unit < kCopyRowsUnits; ++unit)
    for (const char letter : text)
      before += letter == '#' ? char('0' + unit) : letter;
  return before;
}

inline std::string copyRowsText() {
  const std::string head = ".version 7.0\n.target sm_" + std::to_string(kAddRowsTarget) + R"(
.address_size 64
.visible .entry heddle_copy_rows(.param .align 8 .b8 all[320])
{
  .reg .b32 %block, %blocks, %thread, %threads, %step, %place, %width, %height, %count, %row, %column;
  .reg .b64 %rows, %to, %from, %wide, %toPitch, %fromPitch, %offset;
)",
                    parameters = R"(
  mov.u32 %block, %ctaid.y;
  mul.wide.u32 %offset, %block, 40;
  mov.b64 %rows, all;
  add.u64 %rows, %rows, %offset;
  ld.param.u64 %to, [%rows];
  ld.param.u64 %from, [%rows+8];
  ld.param.u64 %toPitch, [%rows+16];
  ld.param.u64 %fromPitch, [%rows+24];
  ld.param.u32 %width, [%rows+32];
  ld.param.u32 %height, [%rows+36];
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %thread, %tid.x;
  mov.u32 %threads, %ntid.x;
  mad.lo.u32 %place, %block, %threads, %thread;
  mul.lo.u32 %step, %blocks, %threads;
  mul.lo.u32 %count, %width, %height;
)";
  const std::string load = R"(
  setp.lt.u32 %is#, %place, %count;
  div.u32 %row, %place, %width;
  rem.u32 %column, %place, %width;
  cvt.u64.u32 %wide, %row;
  mul.wide.u32 %offset, %column, 16;
  mad.lo.u64 %to#, %wide, %toPitch, %to;
  add.u64 %to#, %to#, %offset;
  mad.lo.u64 %from#, %wide, %fromPitch, %from;
  add.u64 %from#, %from#, %offset;
  @%is# ld.global.v4.u32 {%a#, %b#, %c#, %d#}, [%from#];
  add.u32 %place, %place, %step;
)",
                    store = "  @%is# st.global.v4.u32 [%to#], {%a#, %b#, %c#, %d#};\n",
                    registers = "  .reg .pred %is#;\n  .reg .b32 %a#, %b#, %c#, %d#;\n  .reg .b64 %to#, %from#;\n";
  return forEachUnit(forEachUnit(forEachUnit(head, registers) + parameters, load), store) + R"(
  ret;
}
)";
}

} // namespace heddle
