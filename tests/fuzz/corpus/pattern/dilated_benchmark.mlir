attn.pattern @dilated_benchmark() {
  %a = attn.full
  %d1 = attn.dilate %a by 2 rule(group)
  %d2 = attn.dilate %a by 8 rule(group)
  %s0 = attn.segment %a by [8192]
  %s1 = attn.segment %d1 by [16384]
  %s2 = attn.segment %d2 by [32768]
  %m = attn.heads %s0, %s1, %s2
  attn.softmax union(%m)
}
