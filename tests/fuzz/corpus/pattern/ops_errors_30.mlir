attn.pattern @bad(%left: i32 {attn.default = 1 : i32, attn.min = 2 : i32}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}
