attn.pattern @bad() {
  %m = attn.stride k by 0 at 0
  attn.softmax union(%m)
}
