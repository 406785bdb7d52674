attn.pattern @bad() {
  %m = attn.box [0, 4]
  attn.softmax union(%m)
}
