attn.pattern @block_topk(
    %offsets: memref<?x?x?xi32>,
    %indices: memref<?xi32>) {
  %l = attn.csr %offsets, %indices : memref<?x?x?xi32>, memref<?xi32>
  %own = attn.window [0, 0]
  %u = attn.or %l, %own
  %b = attn.blocks %u by [64]
  %c = attn.causal
  %m = attn.and %b, %c
  attn.softmax union(%m)
}
