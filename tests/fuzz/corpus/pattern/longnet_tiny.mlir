attn.pattern @longnet_tiny() {
  %a = attn.causal
  %d1 = attn.dilate %a by 2 rule(block)
  %d2 = attn.dilate %a by 4 rule(block)
  %s0 = attn.segment %a by [4]
  %s1 = attn.segment %d1 by [8]
  %s2 = attn.segment %d2 by [16]
  attn.softmax lse(%s0, %s1, %s2) gradient(detached)
}
