attn.pattern @unfinished() {
  %a = attn.causal
  %b = attn.and %a, %a
}
