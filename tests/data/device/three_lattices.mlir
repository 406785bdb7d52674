// Rows at rates 1, 2 and 4, in segments, with another union for the second half of the heads, softcap and a sink.
attn.pattern @three_lattices(%left: i32 {attn.default = 100 : i32, attn.min = 0 : i32}) {
  %w = attn.window [%left, 0]
  %c = attn.causal
  %d2 = attn.dilate %c by 2 rule(every)
  %d4 = attn.dilate %c by 4 rule(block)
  %u = attn.or %w, %d2, %d4
  %a = attn.segment %u by [1024]
  %m = attn.heads %a, %w
  %s = attn.scaled
  %t = attn.softcap %s by 20.0
  attn.softmax union(%m) of %t sink 0.5
}
