attn.pattern @dilated_scaled(%quarter: i32 {attn.default = 1024 : i32, attn.min = 1 : i32, attn.doc = "tokens"},
                             %half: i32 {attn.default = 2048 : i32, attn.min = 1 : i32, attn.doc = "tokens"},
                             %whole: i32 {attn.default = 4096 : i32, attn.min = 1 : i32, attn.doc = "tokens"}) {
  %a = attn.full
  %d1 = attn.dilate %a by 2 rule(group)
  %d2 = attn.dilate %a by 4 rule(group)
  %s0 = attn.segment %a by [%quarter]
  %s1 = attn.segment %d1 by [%half]
  %s2 = attn.segment %d2 by [%whole]
  %m = attn.heads %s0, %s1, %s2
  attn.softmax union(%m)
}
