// Causal sliding window: a query sees itself and the `left` keys before it.
//   left  keys before the query, in tokens; a window of 1024 keys is left = 1023
// Kept pairs: about n (left + 1) per head, work grows with n and not with n^2.
// Source: Child et al., "Sparse Transformers" (2019); Jiang et al., "Mistral 7B" (2023).
attn.pattern @sliding_window(%left: i32 {attn.default = 1023 : i32, attn.doc = "keys before the query, in tokens"}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}
