// Thinning inside blocks: a query sees its own block of 256 tokens and the two beside it, and of each block the half
// that it lies in itself: first halves see first halves. The second half of the heads keeps odd positions only. Not
// causal.
//   blocks of 256 tokens, halves of 128; rates 1 and 2
// Kept pairs: about 384 n per head of the first half, 96 n per head of the second.
// Source: the dilated-attention-pytorch fork, its guide to block sparse dilated attention (window of 256, segments 128
// and 128, rates 1 and 2): an active pair of blocks and the partition, both.
attn.pattern @block_thinned() {
  %own = attn.window [0, 0]
  %two = attn.window [2, 2]
  %one = attn.window [1, 1]
  %far = attn.not %one
  %beside = attn.and %two, %far
  %halves = attn.or %own, %beside
  %blocks = attn.blocks %halves by [128]
  %full = attn.full
  %thin = attn.dilate %full by 2 rule(group)
  %groups = attn.heads %full, %thin
  %m = attn.and %blocks, %groups
  attn.softmax union(%m)
}
