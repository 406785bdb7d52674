attn.pattern @alibi() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.alibi %t
  attn.softmax union(%m) of %t
}
