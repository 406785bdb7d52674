attn.pattern @dilated_tiny() {
  %a = attn.full
  %d1 = attn.dilate %a by 2 rule(group)
  %d2 = attn.dilate %a by 4 rule(group)
  %s0 = attn.segment %a by [2]
  %s1 = attn.segment %d1 by [4]
  %s2 = attn.segment %d2 by [8]
  %m = attn.heads %s0, %s1, %s2
  attn.softmax union(%m)
}
