attn.pattern @dilated_compare() {
  %a = attn.full
  %d1 = attn.dilate %a by 2 rule(group)
  %d2 = attn.dilate %a by 4 rule(group)
  %d3 = attn.dilate %a by 8 rule(group)
  %s0 = attn.segment %a by [2048]
  %s1 = attn.segment %d1 by [4096]
  %s2 = attn.segment %d2 by [8192]
  %s3 = attn.segment %s1 by [16384]
  %m = attn.heads %s0, %s1, %s2, %s3
  %n33 = attn.causal
  attn.softmax union(%m)
}
