attn.pattern @block_thinned() {
  %own = attn.window [0, 0]
  %two = attn.window [2, 2]
  %one = attn.window [1, 1]
  %far = attn.not %one
  %beside = attn.and %two, %far
  %halves = attn.or %own, %beside
  %blocks = attn.blocks %halves by [128]
  %full = attn.full
  %thin = attn.dilate %full by 2 rule(group)
  %groups = attn.heads %full, %thin
  %m = attn.and %blocks, %groups
  attn.softmax union(%m)
}
