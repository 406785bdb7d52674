attn.pattern @sliding_window(%left: i32 {attn.default = 1023 : i32, attn.doc = "keys before the query, in tokens"}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}
