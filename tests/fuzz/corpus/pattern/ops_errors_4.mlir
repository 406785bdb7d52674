attn.pattern @bad() {
  %m = attn.rows [-1, 0]
  attn.softmax union(%m)
}
