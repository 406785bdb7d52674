attn.pattern @bad() {
  %f = attn.full
  %m = attn.dilate %f by 2 rule(group)
  attn.softmax union(%m)
}
