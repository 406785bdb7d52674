// Attention with relative position biases: the score of a pair gets the entry of a table for its head and its distance;
// pairs further apart than the table reaches get its first or last entry.
//   table  [heads, entries]
//   reach  the entry of distance 0; 2 reach + 1 entries serve distances from -reach to reach
// Kept pairs: n^2 per head for n queries and n keys.
// Source: Shaw, Uszkoreit, Vaswani, "Self-Attention with Relative Position Representations" (2018), as one number for
// each head and distance.
attn.pattern @relative_bias(%table: memref<?x?xf32> {attn.doc = "added to the score of a pair, in the unit of scores"},
                            %reach: i32 {attn.default = 127 : i32, attn.doc = "entry of distance 0"}) {
  %m = attn.full
  %s = attn.scaled
  %t = attn.relative %s, %table at [%reach] : memref<?x?xf32>
  attn.softmax union(%m) of %t
}
