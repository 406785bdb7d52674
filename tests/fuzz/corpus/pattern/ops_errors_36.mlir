attn.pattern @bad() {
  attn.softmax union()
}
