attn.pattern @dilated_base() {
  %c = attn.causal
  %d1 = attn.dilate %c by 2 rule(group)
  %d2 = attn.dilate %c by 4 rule(group)
  %d3 = attn.dilate %c by 6 rule(group)
  %d4 = attn.dilate %c by 12 rule(group)
  %s0 = attn.segment %c by [2048]
  %s1 = attn.segment %d1 by [4096]
  %s2 = attn.segment %d2 by [8192]
  %s3 = attn.segment %d3 by [16384]
  %s4 = attn.segment %d4 by [32768]
  %m = attn.heads %s0, %s1, %s2, %s3, %s4
  attn.softmax union(%m)
}
