// Block-sparse local window: a query sees the blocks up to `radius` away from its own, whole. Not causal.
//   blocks of 128 tokens; radius 2 makes 5 blocks, 512 tokens of window and the rest of the block
// Kept pairs: about n 128 (2 radius + 1) per head.
// Source: the dilated-attention-pytorch fork, block sparse attention, pattern local_window (512 tokens), with one
// softmax per row.
attn.pattern @block_window(%radius: i32 {attn.default = 2 : i32, attn.doc = "blocks to each side"}) {
  %w = attn.window [%radius, %radius]
  %m = attn.blocks %w by [128]
  attn.softmax union(%m)
}
