attn.pattern @sparse_strided() {
  %near = attn.window [63, 0]
  %c = attn.causal
  %far = attn.dilate %c by 64 rule(every)
  %m = attn.heads %near, %far
  attn.softmax union(%m)
}
