attn.pattern @bigbird_causal(%globals: i32 {attn.default = 1 : i32},
                             %randoms: i32 {attn.default = 3 : i32},
                             %seed: i32 {attn.default = 0 : i32}) {
  %near = attn.window [1, 0]
  %first = attn.cols [%globals, 0]
  %random = attn.random count %randoms seed %seed
  %u = attn.or %near, %first, %random
  %b = attn.blocks %u by [64]
  %c = attn.causal
  %m = attn.and %b, %c
  attn.softmax union(%m)
}
