// Random blocks: a query sees its own block and `count` random ones. Not causal. For a density p of N blocks the count is
// max(1, round(p N)): the default is 10 % of the 256 blocks of 32768 tokens.
//   blocks of 128 tokens; count in blocks
// Random blocks are keyed permutations of the blocks (docs/language.md): no table, the same on every machine.
// Kept pairs: about 128 n (count + 1) per head, less where permutations meet.
// Source: the dilated-attention-pytorch fork, pattern generator, random (drawn there from the machine's generator).
attn.pattern @random_blocks(%count: i32 {attn.default = 26 : i32, attn.doc = "random blocks of each query block"},
                            %seed: i32 {attn.default = 0 : i32, attn.doc = "which random blocks"}) {
  %own = attn.window [0, 0]
  %random = attn.random count %count seed %seed
  %u = attn.or %own, %random
  %m = attn.blocks %u by [128]
  attn.softmax union(%m)
}
