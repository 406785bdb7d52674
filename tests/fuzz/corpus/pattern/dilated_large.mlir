attn.pattern @dilated_large() {
  %a = attn.causal
  %d1 = attn.dilate %a by 2 rule(group)
  %d2 = attn.dilate %a by 4 rule(group)
  %d3 = attn.dilate %a by 8 rule(group)
  %s0 = attn.segment %a by [4096]
  %s1 = attn.segment %d1 by [8192]
  %s2 = attn.segment %d2 by [16384]
  %s3 = attn.segment %d3 by [32768]
  %m = attn.heads %s0, %s1, %s2, %s3
  attn.softmax union(%m)
}
