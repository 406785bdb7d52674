// Block-sparse attention by index lists in device memory: for each batch element, head and block of 128 queries the key blocks
// of 128 that its queries see, for layouts that a program decides on at run time (block scores, retrieval).
//   offsets  [batch, heads, blocks of queries + 1] where the list of each block begins among the indices; 1 in the place of
//            batch serves all elements
//   indices  numbers of key blocks, ascending in each list
// Kept pairs: 128 keys for each query and index of its block, per head; the last blocks may be short.
// Source: block-sparse layouts of FlashInfer and of Triton's block-sparse attention; Jiang et al., "MInference" (2024).
attn.pattern @block_csr(
    %offsets: memref<?x?x?xi32> {attn.doc = "where the list of each query block begins, for each batch element and head"},
    %indices: memref<?xi32> {attn.doc = "key blocks, those of one query block ascending"}) {
  %l = attn.csr %offsets, %indices : memref<?x?x?xi32>, memref<?xi32>
  %m = attn.blocks %l by [128]
  attn.softmax union(%m)
}
