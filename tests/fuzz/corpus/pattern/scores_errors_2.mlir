attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.softcap %s by 1.0e60
  attn.softmax union(%m) of %t
}
