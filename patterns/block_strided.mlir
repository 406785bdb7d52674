// Block-sparse strided attention: a query sees every fourth block and the two beside its own; its own only if that is
// a fourth one. Not causal.
//   blocks of 128 tokens
// Kept pairs: about n^2 / 4 + 192 n per head.
// Source: the dilated-attention-pytorch fork, pattern generator, strided (stride 4), without its random corrections.
attn.pattern @block_strided() {
  %every = attn.stride k by 4 at 0
  %near = attn.window [1, 1]
  %own = attn.window [0, 0]
  %others = attn.not %own
  %beside = attn.and %near, %others
  %u = attn.or %every, %beside
  %m = attn.blocks %u by [128]
  attn.softmax union(%m)
}
