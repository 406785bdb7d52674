attn.pattern @streaming(%first: i32 {attn.default = 4 : i32, attn.doc = "tokens at the start that stay visible"},
                        %left: i32 {attn.default = 1023 : i32, attn.doc = "keys before the query, in tokens"}) {
  %c = attn.causal
  %w = attn.window [%left, 0]
  %s = attn.cols [%first, 0]
  %past = attn.and %s, %c
  %m = attn.or %w, %past
  attn.softmax union(%m)
}
