attn.pattern @bad() {
  %f = attn.full
  %m = attn.dialate %f by 2 at 0
  attn.softmax union(%m)
}
