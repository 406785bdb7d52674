attn.pattern @bad(%size: i32 {attn.default = 0 : i32}) {
  %f = attn.full
  %m = attn.blocks %f by [%size]
  attn.softmax union(%m)
}
