attn.pattern @longformer(%half: i32 {attn.default = 256 : i32, attn.doc = "tokens to each side"},
                         %globals: i32 {attn.default = 64 : i32, attn.doc = "global tokens at the start"}) {
  %w = attn.window [%half, %half]
  %r = attn.rows [%globals, 0]
  %k = attn.cols [%globals, 0]
  %m = attn.or %w, %r, %k
  attn.softmax union(%m)
}
