// Owns the one kernel that the runtime brings itself, as text that the driver compiles: fp32 rows that came from another
// rank are added to a rank's own, or merged with them, as results of attention over other keys. A thread has one element of
// a row, blocks of a column of the grid take rows in turn.
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
  uint64_t lse, lseFrom, lseSum; // none: rows are added
};

// Of the oldest GPUs that kernels are made for: drivers compile it for later ones too.
inline constexpr int kAddRowsTarget = 80;

inline std::string addRowsText() {
  return ".version 7.0\n.target sm_" + std::to_string(kAddRowsTarget) + R"(
.address_size 64
.visible .entry heddle_add_rows(
    .param .u64 to, .param .u64 from, .param .u32 width, .param .u32 heads, .param .u32 rows, .param .u32 batches,
    .param .u64 toBatch, .param .u64 toRow, .param .u64 toHead,
    .param .u64 fromBatch, .param .u64 fromRow, .param .u64 fromHead,
    .param .u64 lse, .param .u64 lseFrom, .param .u64 lseSum)
{
  .reg .pred %isOver, %isMerge, %is;
  .reg .b32 %x, %threads, %thread, %width, %heads, %all, %head, %column, %batch, %row, %rows, %step, %place;
  .reg .b64 %to, %from, %stride, %wide, %offset, %at, %of;
  .reg .b64 %lse, %lseFrom, %lseSum;
  .reg .f32 %sum, %more, %a, %b, %m, %w;
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
  ld.param.u64 %lse, [lse];
  ld.param.u64 %lseFrom, [lseFrom];
  ld.param.u64 %lseSum, [lseSum];
  setp.ne.u64 %isMerge, %lse, 0;
  ld.param.u32 %all, [heads];
  mad.lo.u32 %place, %batch, %all, %head;
  mul.lo.u32 %place, %place, %rows;
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
  @!%isMerge bra ADD;
  add.u32 %x, %place, %row;
  mul.wide.u32 %wide, %x, 4;
  add.u64 %offset, %lse, %wide;
  ld.global.f32 %a, [%offset];
  add.u64 %offset, %lseFrom, %wide;
  ld.global.f32 %b, [%offset];
  max.f32 %m, %a, %b;
  setp.eq.f32 %is, %m, 0fFF800000;
  selp.f32 %m, 0f00000000, %m, %is;
  sub.f32 %a, %a, %m;
  sub.f32 %b, %b, %m;
  mul.f32 %a, %a, 0f3FB8AA3B;
  mul.f32 %b, %b, 0f3FB8AA3B;
  ex2.approx.f32 %a, %a;
  ex2.approx.f32 %b, %b;
  add.f32 %w, %a, %b;
  lg2.approx.f32 %b, %w;
  fma.rn.f32 %m, %b, 0f3F317218, %m;
  setp.eq.f32 %is, %w, 0f00000000;
  selp.f32 %w, 0f3F800000, %w, %is;
  div.rn.f32 %a, %a, %w;
  sub.f32 %b, 0f3F800000, %a;
  mul.f32 %sum, %sum, %a;
  mul.f32 %more, %more, %b;
  setp.ne.u32 %is, %column, 0;
  add.u64 %offset, %lseSum, %wide;
  @!%is st.global.f32 [%offset], %m;
ADD:
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
