// Dilated attention, small enough to check by hand: three groups of heads, partition rule.
//   segment lengths 2, 4, 8 tokens; rates 1, 2, 4; group i keeps the positions with pos % r == i % r
// Kept pairs: n w / r^2 per head of a group, fewer in a short last segment.
// Source: fkodom/dilated-attention-pytorch, tests (n = 16).
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
