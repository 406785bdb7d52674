attn.pattern @lone_at_rate_32() {
  %f = attn.full
  %d1 = attn.dilate %f by 2 rule(block)
  %d2 = attn.dilate %f by 4 rule(block)
  %d3 = attn.dilate %d2 by 8 rule(block)
  %d4 = attn.dilate %f by 16 rule(block)
  %b0 = attn.segment %f by [64]
  %b1 = attn.segment %d1 by [168]
  %b2 = attn.segment %d2 by [256]
  %b3 = attn.segment %d3 by [3]
  %b4 = attn.segment %b2 by [1]
attn.segment %d4 by [1]
  attn.softmax lse(%b1, %b1, %b2, %b3, %b4) gradient(detached)
}
