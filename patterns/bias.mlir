// Causal attention with an additive bias: a tensor gives a number for each head, query and key, the same for every batch
// element. Learned position biases, and masks that come as tensors of 0 and -inf.
//   bias  [1, heads, seqlen_q, seqlen_k]; 1 in the place of a size serves them all
// Kept pairs: n (n + 1) / 2 per head for n queries and n keys.
attn.pattern @bias(%bias: memref<1x?x?x?xbf16> {attn.doc = "added to the score of each pair, in the unit of scores, natural logarithms of weights"}) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.bias %s, %bias : memref<1x?x?x?xbf16>
  attn.softmax union(%m) of %t
}
