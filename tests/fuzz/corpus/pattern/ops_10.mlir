attn.pattern @branches() {
  %a = attn.causal
  %b = attn.full
  attn.softmax lse(%a, %b) gradient(detached)
}
