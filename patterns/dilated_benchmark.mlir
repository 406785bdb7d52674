// Dilated attention as its author measured it: three groups of heads, partition rule, not causal.
//   segment lengths 8192, 16384, 32768 tokens; rates 1, 2, 8; group i keeps the positions with pos % r == i % r
// Kept pairs: n w / r^2 per head of a group.
// Source: fkodom/dilated-attention-pytorch, benchmark (its rates are 2^(w / 8192 - 1): 1, 2, 8).
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
