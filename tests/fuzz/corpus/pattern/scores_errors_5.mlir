attn.pattern @bad() {
  %m = attn.causal
  %t = attn.alibi %m
  attn.softmax union(%m) of %t
}
