// A window and a summary of the past in every head: the last keys, and of all before them one key of every 32.
//   left  keys before the query, in tokens
// Causal. The two lie on different key lattices: heddle walks each at its own stride, and no pair counts twice.
// Kept pairs: about n (left + 1) + n^2 / 64 per head.
// Source: Child et al., "Generating Long Sequences with Sparse Transformers" (2019): the local and the summarising
// factor of "fixed" attention in one merged head.
attn.pattern @window_strided(%left: i32 {attn.default = 1023 : i32, attn.min = 0 : i32,
                                         attn.doc = "keys before the query, in tokens"}) {
  %near = attn.window [%left, 0]
  %c = attn.causal
  %every = attn.stride k by 32 at 31
  %far = attn.and %every, %c
  %m = attn.or %near, %far
  attn.softmax union(%m)
}
