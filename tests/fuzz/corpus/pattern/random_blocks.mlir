attn.pattern @random_blocks(%count: i32 {attn.default = 26 : i32, attn.doc = "random blocks of each query block"},
                            %seed: i32 {attn.default = 0 : i32, attn.doc = "which random blocks"}) {
  %own = attn.window [0, 0]
  %random = attn.random count %count seed %seed
  %u = attn.or %own, %random
  %m = attn.blocks %u by [128]
  attn.softmax union(%m)
}
