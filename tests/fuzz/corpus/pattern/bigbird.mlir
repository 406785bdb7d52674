attn.pattern @bigbird(%globals: i32 {attn.default = 1 : i32, attn.doc = "global blocks at the start"},
                      %randoms: i32 {attn.default = 3 : i32, attn.doc = "random blocks of each query block"},
                      %seed: i32 {attn.default = 0 : i32, attn.doc = "which random blocks"}) {
  %near = attn.window [1, 1]
  %r = attn.rows [%globals, 0]
  %c = attn.cols [%globals, 0]
  %random = attn.random count %randoms seed %seed
  %u = attn.or %near, %r, %c, %random
  %m = attn.blocks %u by [64]
  attn.softmax union(%m)
}
