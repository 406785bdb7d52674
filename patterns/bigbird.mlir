// BigBird: a query sees its own block and the two beside it, the first `globals` blocks, and `randoms` random blocks; the
// rows of the first `globals` blocks see everything. Not causal.
//   blocks of 64 tokens; globals, randoms in blocks
// Random blocks are keyed permutations of the blocks (docs/language.md): no table, the same on every machine.
// Kept pairs: about 64 n (3 + 2 globals + randoms) per head.
// Source: Zaheer et al., "Big Bird: Transformers for Longer Sequences" (2020), with global blocks at the start only.
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
