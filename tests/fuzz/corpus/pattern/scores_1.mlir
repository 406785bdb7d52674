attn.pattern @branches_share_a_chain() {
  %m = attn.causal
  %n = attn.full
  %s = attn.scaled
  %t = attn.alibi %s
  attn.softmax lse(%m, %n) of %t gradient(detached)
}
