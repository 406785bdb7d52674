attn.pattern @leaves() {
  %r = attn.rows [64, 0]
  %c = attn.cols [0, 2]
  %s0 = attn.stride k by 4 at 3
  %s1 = attn.stride q by 2 rule(modulo)
  %s2 = attn.stride q by 3 rule(block)
  %m = attn.or %r, %c, %s0, %s1, %s2
  attn.softmax union(%m)
}
