attn.pattern @bad() {
  %f = attn.full
  %m = attn.dilate %f by 0 at 0
  attn.softmax union(%m)
}
