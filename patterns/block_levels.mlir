// Block-sparse levels: every row of blocks sees the blocks up to 2 away, every fourth row those up to 8 away, every
// sixteenth everything. Not causal.
//   blocks of 64 tokens
// Kept pairs: about 320 n + 192 n + n^2 / 16 per head.
// Source: the dilated-attention-pytorch fork, hierarchical block sparse attention, levels (64, 256), (256, 1024) and
// (1024, all), with one softmax per row.
attn.pattern @block_levels() {
  %near = attn.window [2, 2]
  %wide = attn.window [8, 8]
  %fourth = attn.stride q by 4 at 0
  %all = attn.stride q by 16 at 0
  %middle = attn.and %wide, %fourth
  %u = attn.or %near, %middle, %all
  %m = attn.blocks %u by [64]
  attn.softmax union(%m)
}
