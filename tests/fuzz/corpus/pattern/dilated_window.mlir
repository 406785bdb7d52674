attn.pattern @dilated_window(%half: i32 {attn.default = 1024 : i32, attn.doc = "steps of 4 tokens to each side"}) {
  %w = attn.window [%half, %half]
  %m = attn.dilate %w by 4 rule(every)
  attn.softmax union(%m)
}
