attn.pattern @bad() {
  %m = attn.stride k by 4
  attn.softmax union(%m)
}
