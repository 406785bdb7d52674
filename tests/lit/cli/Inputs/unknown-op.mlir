attn.pattern @unknown_op() {
  %m = attn.windov [4, 0]
  attn.softmax union(%m)
}
