// Sparse Transformer, strided: half of the heads see the last `stride` keys, the other half every key whose distance
// is a multiple of the stride. Causal.
//   stride 64 tokens, about the square root of the length
// Kept pairs: about 64 n per head of the first half, n^2 / 128 per head of the second.
// Source: Child et al., "Generating Long Sequences with Sparse Transformers" (2019), one factor per head.
attn.pattern @sparse_strided() {
  %near = attn.window [63, 0]
  %c = attn.causal
  %far = attn.dilate %c by 64 rule(every)
  %m = attn.heads %near, %far
  attn.softmax union(%m)
}
