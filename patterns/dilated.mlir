// Dilated attention, partition rule: the heads are split into three groups, each with one segment length and one
// dilation rate. Inside a segment of w tokens group i keeps the positions with pos % r == i % r, queries and keys
// alike, and attends densely among them; the other rows of its heads are 0.
//   segment lengths 2048, 4096, 8192 tokens; rates 1, 2, 4; every kept query sees 2048 keys
// Kept pairs: n / r * w / r per head of a group.
// Source: fkodom/dilated-attention-pytorch, DilatedAttention (LongNet, Ding et al., 2023), without its division by
// the number of groups and by the output's own sum.
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
