attn.pattern @block_window(%radius: i32 {attn.default = 2 : i32, attn.doc = "blocks to each side"}) {
  %w = attn.window [%radius, %radius]
  %m = attn.blocks %w by [128]
  attn.softmax union(%m)
}
