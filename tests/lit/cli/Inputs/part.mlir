attn.pattern @near_and_ends(%left: i32 {attn.default = 9 : i32},
    %whole_queries: i32 {attn.whole = "queries"}, %whole_keys: i32 {attn.whole = "keys"}) q_origin(given) {
  %w = attn.window [%left, 0]
  %c = attn.cols [2, 2]
  %m = attn.or %w, %c
  attn.softmax union(%m)
}
