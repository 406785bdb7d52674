attn.pattern @block_strided() {
  %every = attn.stride k by 4 at 0
  %near = attn.window [1, 1]
  %own = attn.window [0, 0]
  %others = attn.not %own
  %beside = attn.and %near, %others
  %u = attn.or %every, %beside
  %m = attn.blocks %u by [128]
  attn.softmax union(%m)
}
