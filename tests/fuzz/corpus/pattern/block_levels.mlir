attn.pattern @block_levels() {
  %near = attn.window [2, 2]
  %wide = attn.window [8, 8]
  %fourth = attn.stride q by 4 at 0
  %all = attn.stride q by 16 at 0
  %middle = attn.and %wide, %fourth
  %u = attn.or %near, %middle, %all
  %m = attn.blocks %u by [64]
  attn.softmax union(%m)
}
