attn.pattern @bad() {
  %m = attn.box [0, 4, -3, 4]
  attn.softmax union(%m)
}
