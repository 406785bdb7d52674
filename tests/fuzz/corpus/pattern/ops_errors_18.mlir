attn.pattern @bad() {
  %f = attn.full
  %m = attn.dilate %f by 2 at -1
  attn.softmax union(%m)
}
