attn.pattern @sparse_fixed() {
  %c = attn.causal
  %block = attn.segment %c by [128]
  %none = attn.box [0, 0, 0, 0]
  %k0 = attn.stride k by 128 at 124
  %k1 = attn.stride k by 128 at 125
  %k2 = attn.stride k by 128 at 126
  %k3 = attn.stride k by 128 at 127
  %s0 = attn.and %c, %k0
  %s1 = attn.and %c, %k1
  %s2 = attn.and %c, %k2
  %s3 = attn.and %c, %k3
  %b0 = attn.heads %block, %s0
  %b1 = attn.heads %none, %s1
  %b2 = attn.heads %none, %s2
  %b3 = attn.heads %none, %s3
  attn.softmax lse(%b0, %b1, %b2, %b3)
}
