attn.pattern @bad() {
  %f = attn.full
  %m = attn.blocks %f by [0]
  attn.softmax union(%m)
}
