// Block-sparse attention with global blocks: a query sees the blocks up to 2 away from its own; the first `globals`
// blocks see and are seen by everything. Not causal.
//   blocks of 128 tokens
// Kept pairs: about 640 n + 256 n globals per head.
// Source: the dilated-attention-pytorch fork, block sparse attention, pattern global_local (window 512 tokens), with
// one softmax per row and global rows as well as columns.
attn.pattern @block_global(%globals: i32 {attn.default = 1 : i32, attn.doc = "global blocks"}) {
  %w = attn.window [2, 2]
  %r = attn.rows [%globals, 0]
  %c = attn.cols [%globals, 0]
  %u = attn.or %w, %r, %c
  %m = attn.blocks %u by [128]
  attn.softmax union(%m)
}
