attn.pattern @bad_rate() {
  %f = attn.full
  %m = attn.dilate %f by 0 at 0
  attn.softmax union(%m)
}
