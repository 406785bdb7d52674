attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.softcap %s by -2.0
  attn.softmax union(%m) of %t
}
