attn.pattern @bad() {
  %m = attn.box [5, 5, 9, 8]
  attn.softmax union(%m)
}
