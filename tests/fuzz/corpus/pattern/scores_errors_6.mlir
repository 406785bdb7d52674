attn.pattern @bad() {
  %m = attn.causal
  attn.softmax union(%m) of %m
}
