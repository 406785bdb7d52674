attn.pattern @bad() {
  %m = attn.window [4]
  attn.softmax union(%m)
}
