attn.pattern @bad() {
  %m = attn.prefix [-1]
  attn.softmax union(%m)
}
