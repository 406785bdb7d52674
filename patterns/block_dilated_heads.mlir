// Block-sparse dilated attention with a rate for each quarter of the heads: a query sees its own block and, to both sides,
// `reach` blocks at steps of 1, 2, 4 or 8 blocks. Not causal.
//   blocks of 128 tokens; rates 1, 2, 4, 8
//   reach  in steps: an eighth of the blocks keeps 25 % of the pairs of rows far from the ends, 8 for 8192 tokens
// Kept pairs: about 128 n (2 reach + 1) per head, less by the blocks that would lie before the first or behind the last.
// Source: the dilated-attention-pytorch fork, pattern generator, dilated_sparse (rates 1, 2, 4, 8, ratio 0.25), without its
// random corrections; there head h has rate number h mod 4.
attn.pattern @block_dilated_heads(%reach: i32 {attn.default = 8 : i32, attn.doc = "steps to each side"}) {
  %w = attn.window [%reach, %reach]
  %two = attn.dilate %w by 2 rule(every)
  %four = attn.dilate %w by 4 rule(every)
  %eight = attn.dilate %w by 8 rule(every)
  %h = attn.heads %w, %two, %four, %eight
  %m = attn.blocks %h by [128]
  attn.softmax union(%m)
}
