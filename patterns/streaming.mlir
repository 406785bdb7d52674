// Streaming attention: a query sees the first tokens of the sequence, itself and the `left` keys before it.
//   first  tokens at the start that every later query sees (attention sinks)
//   left   keys before the query, in tokens
// Kept pairs: about n (left + 1 + first) per head.
// Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks" (2023); positions are those of the
// text, not of the cache.
attn.pattern @streaming(%first: i32 {attn.default = 4 : i32, attn.doc = "tokens at the start that stay visible"},
                        %left: i32 {attn.default = 1023 : i32, attn.doc = "keys before the query, in tokens"}) {
  %c = attn.causal
  %w = attn.window [%left, 0]
  %s = attn.cols [%first, 0]
  %past = attn.and %s, %c
  %m = attn.or %w, %past
  attn.softmax union(%m)
}
