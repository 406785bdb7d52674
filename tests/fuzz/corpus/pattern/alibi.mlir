attn.pattern @alibi() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.alibi %s
  attn.softmax union(%m) of %t
}
