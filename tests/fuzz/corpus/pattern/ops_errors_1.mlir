attn.pattern @bad() {
  %m = attn.window [4, -2]
  attn.softmax union(%m)
}
