attn.pattern @dilated() {
  %full = attn.full
  %near = attn.dilate %full by 1 rule(group)
  %middle = attn.dilate %full by 2 rule(group)
  %far = attn.dilate %full by 4 rule(group)
  %s0 = attn.segment %near by [2048]
  %s1 = attn.segment %middle by [4096]
  %s2 = attn.segment %far by [8192]
  %m = attn.heads %s0, %s1, %s2
  attn.softmax union(%m)
}
