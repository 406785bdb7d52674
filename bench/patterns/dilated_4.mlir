// Dilated attention with four groups of heads, the pattern of patterns/dilated.mlir at 128k tokens: segments of
// 4096, 8192, 16384, 32768 tokens at rates 1, 2, 4, 8. Group i keeps the positions with pos % r == i % r, queries and
// keys alike; the other rows of its heads are 0; every kept query sees 4096 keys.
// Kept pairs: n / r * w / r per head of a group.
attn.pattern @dilated_4() {
  %full = attn.full
  %d0 = attn.dilate %full by 1 rule(group)
  %d1 = attn.dilate %full by 2 rule(group)
  %d2 = attn.dilate %full by 4 rule(group)
  %d3 = attn.dilate %full by 8 rule(group)
  %s0 = attn.segment %d0 by [4096]
  %s1 = attn.segment %d1 by [8192]
  %s2 = attn.segment %d2 by [16384]
  %s3 = attn.segment %d3 by [32768]
  %m = attn.heads %s0, %s1, %s2, %s3
  attn.softmax union(%m)
}
