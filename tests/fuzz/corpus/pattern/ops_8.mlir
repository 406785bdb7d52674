attn.pattern @algebra() {
  %a = attn.causal
  %b = attn.window [3, 3]
  %c = attn.and %a, %b
  %d = attn.or %a, %b, %c
  %e = attn.not %d
  %m = attn.heads %c, %e
  attn.softmax union(%m)
}
