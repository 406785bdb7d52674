attn.pattern @block_dilated() {
  %w1 = attn.window [1, 1]
  %w2 = attn.window [2, 2]
  %w3 = attn.window [3, 3]
  %w4 = attn.window [4, 4]
  %n1 = attn.not %w1
  %n3 = attn.not %w3
  %two = attn.and %w2, %n1
  %four = attn.and %w4, %n3
  %u = attn.or %w1, %two, %four
  %m = attn.blocks %u by [128]
  attn.softmax union(%m)
}
