// BigBird for decoders: a query sees, of the keys up to itself, its own block and the one before, the first `globals` blocks,
// and those of its block's `randoms` random blocks that are earlier ones.
//   blocks of 64 tokens; globals, randoms in blocks
// Random blocks are keyed permutations of the blocks (docs/language.md): about half of them lie before a query.
// Kept pairs: about 64 n (1.5 + globals + randoms / 2) per head.
// Source: Zaheer et al., "Big Bird: Transformers for Longer Sequences" (2020), as DeepSpeed's sparse attention has it with
// attention="unidirectional".
attn.pattern @bigbird_causal(%globals: i32 {attn.default = 1 : i32, attn.doc = "global blocks at the start"},
                             %randoms: i32 {attn.default = 3 : i32, attn.doc = "random blocks of each query block, earlier ones count"},
                             %seed: i32 {attn.default = 0 : i32, attn.doc = "which random blocks"}) {
  %near = attn.window [1, 0]
  %first = attn.cols [%globals, 0]
  %random = attn.random count %randoms seed %seed
  %u = attn.or %near, %first, %random
  %b = attn.blocks %u by [64]
  %c = attn.causal
  %m = attn.and %b, %c
  attn.softmax union(%m)
}
