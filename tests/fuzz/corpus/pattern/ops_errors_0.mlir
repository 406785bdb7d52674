attn.pattern @bad() {
  %m = attn.window [-1, 0]
  attn.softmax union(%m)
}
