attn.pattern @bad() {
  %m = attn.stride k by 4 at 1 rule(modulo)
  attn.softmax union(%m)
}
