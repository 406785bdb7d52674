attn.pattern @block_csr(
    %offsets: memref<?x?x?xi32>,
    %indices: memref<?xi32>) {
  %l = attn.csr %offsets, %indices : memref<?x?x?xi32>, memref<?xi32>
  %m = attn.blocks %l by [128]
  attn.softmax union(%m)
}
