attn.pattern @bad() {
  %m = attn.prefix [1, 2]
  attn.softmax union(%m)
}
