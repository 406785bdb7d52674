// Tree of draft tokens (speculative decoding): the last n queries are guesses that branch, and one call verifies them all. A
// guess sees everything before the guesses, and of these its ancestors and itself; the queries are the last of the keys.
//   ancestors  [n], n at most 64: bit j of entry i says that guess i sees guess j
// Kept pairs: seqlen_q (seqlen_k - n) and one for each bit that is set, per head.
// Source: Miao et al., "SpecInfer" (2023); Cai et al., "Medusa" (2024).
attn.pattern @tree_decode(%ancestors: memref<?xi64> {attn.doc = "which draft tokens each draft token sees, a bit each"}) q_origin(end) {
  %m = attn.tree %ancestors : memref<?xi64>
  attn.softmax union(%m)
}
