attn.pattern @blocks(%size: i32) {
  %w = attn.window [1, 1]
  %a = attn.blocks %w by [64]
  %b = attn.blocks %w by [%size]
  %m = attn.or %a, %b
  attn.softmax union(%m)
}
