// Random blocks for decoders: a query sees, of the keys up to itself, its own block and those of its block's `count` random
// blocks that are earlier ones, about half of them.
//   blocks of 128 tokens; count in blocks: 52 is 20 % of the 256 blocks of 32768 tokens, so that 10 % are kept
// Random blocks are keyed permutations of the blocks (docs/language.md): no table, the same on every machine.
// Kept pairs: about 64 n (count + 1) per head, less where permutations meet.
// Source: random_blocks, cut as DeepSpeed's sparse attention cuts random layouts with attention="unidirectional".
attn.pattern @random_blocks_causal(%count: i32 {attn.default = 52 : i32, attn.doc = "random blocks of each query block, earlier ones count"},
                                   %seed: i32 {attn.default = 0 : i32, attn.doc = "which random blocks"}) {
  %own = attn.window [0, 0]
  %random = attn.random count %count seed %seed
  %u = attn.or %own, %random
  %b = attn.blocks %u by [128]
  %c = attn.causal
  %m = attn.and %b, %c
  attn.softmax union(%m)
}
