attn.pattern @segments_of_three_beside_rates_7_and_8() {
  %c = attn.causal
  %d1 = attn.dilate %c by 2 rule(block)
  %d2 = attn.dilate %c by 8 rule(block)
  %d3 = attn.dilate %c by 7 rule(block)
  %d4 = attn.dilate %c by 12 rule(block)
  %b0 = attn.segment %c by [2048]
  %b1 = attn.segment %d1 by [3]
  %b2 = attn.segment %d2 by [8192]
  %b3 = attn.segment %d3 by [16384]
  %b4 = attn.segment %d4 by [32768]
  attn.softmax lse(%b0, %b1, %b2, %b3, %b4)
}
