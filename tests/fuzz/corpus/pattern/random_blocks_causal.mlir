attn.pattern @random_blocks_causal(%count: i32 {attn.default = 52 : i32},
                                   %seed: i32 {attn.default = 0 : i32}) {
  %own = attn.window [0, 0]
  %random = attn.random count %count seed %seed
  %u = attn.or %own, %random
  %b = attn.blocks %u by [128]
  %c = attn.causal
  %m = attn.and %b, %c
  attn.softmax union(%m)
}
