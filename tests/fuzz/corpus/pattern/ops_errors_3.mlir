attn.pattern @bad() {
  %m = attn.window [4294967296, 0]
  attn.softmax union(%m)
}
