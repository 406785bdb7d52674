//===- AddRows.h - sums of rows on a GPU ------------------------*- C++ -*-===//
// Owns the one kernel that the runtime brings itself, as text that the driver compiles: fp32 rows that came from another
// rank are added to a rank's own. A thread has one element of a row, blocks of a column of the grid take rows in turn.
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>

namespace heddle {

inline constexpr const char *kAddRowsName = "heddle_add_rows";
inline constexpr unsigned kAddRowsThreads = 256;
inline constexpr unsigned kAddRowsMostBlocks = 4096; // of a column of the grid

// The parameters of the kernel; strides in bytes.
struct AddRowsParams {
  uint64_t to, from;
  uint32_t width, heads, rows, batches;
  int64_t toBatch, toRow, toHead, fromBatch, fromRow, fromHead;
};

// Of the oldest GPUs that kernels are made for: drivers compile it for later ones too.
inline constexpr int kAddRowsTarget = 80;

inline std::string addRowsText() {
  return ".version 7.0\n.target sm_" + std::to_string(kAddRowsTarget) + R"(
.address_size 64
.visible .entry heddle_add_rows(
    .param .u64 to, .param .u64 from, .param .u32 width, .param .u32 heads, .param .u32 rows, .param .u32 batches,
    .param .u64 toBatch, .param .u64 toRow, .param .u64 toHead,
    .param .u64 fromBatch, .param .u64 fromRow, .param .u64 fromHead)
{
  .reg .pred %isOver;
  .reg .b32 %x, %threads, %thread, %width, %heads, %all, %head, %column, %batch, %row, %rows, %step;
  .reg .b64 %to, %from, %stride, %wide, %offset, %at, %of;
  .reg .f32 %sum, %more;
  mov.u32 %x, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.u32 %x, %x, %threads, %thread;
  ld.param.u32 %width, [width];
  ld.param.u32 %heads, [heads];
  mul.lo.u32 %all, %width, %heads;
  setp.ge.u32 %isOver, %x, %all;
  @%isOver bra DONE;
  div.u32 %head, %x, %width;
  rem.u32 %column, %x, %width;
  mul.wide.u32 %offset, %column, 4;
  cvt.u64.u32 %wide, %head;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  add.u64 %to, %to, %offset;
  add.u64 %from, %from, %offset;
  ld.param.u64 %stride, [toHead];
  mad.lo.u64 %to, %wide, %stride, %to;
  ld.param.u64 %stride, [fromHead];
  mad.lo.u64 %from, %wide, %stride, %from;
  mov.u32 %batch, %ctaid.z;
  cvt.u64.u32 %wide, %batch;
  ld.param.u64 %stride, [toBatch];
  mad.lo.u64 %to, %wide, %stride, %to;
  ld.param.u64 %stride, [fromBatch];
  mad.lo.u64 %from, %wide, %stride, %from;
  mov.u32 %row, %ctaid.y;
  mov.u32 %step, %nctaid.y;
  ld.param.u32 %rows, [rows];
NEXT:
  setp.ge.u32 %isOver, %row, %rows;
  @%isOver bra DONE;
  cvt.u64.u32 %wide, %row;
  ld.param.u64 %stride, [toRow];
  mad.lo.u64 %at, %wide, %stride, %to;
  ld.param.u64 %stride, [fromRow];
  mad.lo.u64 %of, %wide, %stride, %from;
  ld.global.f32 %sum, [%at];
  ld.global.f32 %more, [%of];
  add.f32 %sum, %sum, %more;
  st.global.f32 [%at], %sum;
  add.u32 %row, %row, %step;
  bra NEXT;
DONE:
  ret;
}
)";
}

} // namespace heddle
