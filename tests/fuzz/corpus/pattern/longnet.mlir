attn.pattern @longnet() {
  %c = attn.causal
  %far = attn.dilate %c by 2 rule(block)
  %b0 = attn.segment %c by [2048]
  %b1 = attn.segment %far by [4096]
  attn.softmax lse(%b0, %b1) gradient(detached)
}
