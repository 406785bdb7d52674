attn.pattern @block_global(%globals: i32 {attn.default = 1 : i32, attn.doc = "global blocks"}) {
  %w = attn.window [2, 2]
  %r = attn.rows [%globals, 0]
  %c = attn.cols [%globals, 0]
  %u = attn.or %w, %r, %c
  %m = attn.blocks %u by [128]
  attn.softmax union(%m)
}
