attn.pattern @causal() {
  %m = attn.causal
  attn.softmax union(%m)
}
