attn.pattern @prefix_lm(%length: i32 {attn.default = 1024 : i32, attn.doc = "tokens of the prefix"}) {
  %m = attn.prefix [%length]
  attn.softmax union(%m)
}
