// The best blocks by run-time scores: a query sees, of the keys up to itself, its own block and the blocks that a list of its
// own, for each batch element, head and block of queries, names: the top k of a gate that scores key blocks. Causal whatever
// the list says: a block of later keys keeps nothing, a row always sees itself.
//   blocks of 64 tokens
//   offsets  [batch, heads, blocks of queries + 1] where the list of each block begins among the indices; 1 in the place of
//            batch serves all elements
//   indices  numbers of key blocks, ascending in each list
// Kept pairs: about 64 n (k + 0.5) per head for lists of k blocks before the query's.
// Source: Lu et al., "MoBA: Mixture of Block Attention for Long-Context LLMs" (2025); the dilated-attention-pytorch fork,
// content-adaptive sparsity (3 of 32 blocks of 64), whose lists look ahead.
attn.pattern @block_topk(
    %offsets: memref<?x?x?xi32> {attn.doc = "where the list of each query block begins, for each batch element and head"},
    %indices: memref<?xi32> {attn.doc = "key blocks, those of one query block ascending"}) {
  %l = attn.csr %offsets, %indices : memref<?x?x?xi32>, memref<?xi32>
  %own = attn.window [0, 0]
  %u = attn.or %l, %own
  %b = attn.blocks %u by [64]
  %c = attn.causal
  %m = attn.and %b, %c
  attn.softmax union(%m)
}
