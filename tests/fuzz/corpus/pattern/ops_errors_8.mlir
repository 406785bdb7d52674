attn.pattern @bad() {
  %m = attn.box [5, 4, 0, 4]
  attn.softmax union(%m)
}
