attn.pattern @pullbacks(%w: i32) {
  %f = attn.full
  %a = attn.dilate %f by 4 at 3
  %b = attn.dilate %f by 2 rule(modulo)
  %c = attn.dilate %f by 2 rule(block)
  %d = attn.dilate %f by 2 rule(group)
  %e = attn.dilate %f by 2 rule(every)
  %s = attn.segment %a by [%w]
  %t = attn.segment %b by [2048]
  %m = attn.heads %s, %t, %c, %d, %e
  attn.softmax union(%m)
}
