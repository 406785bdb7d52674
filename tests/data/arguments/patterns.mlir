// The patterns of the calls in bad.txt.
attn.pattern @near(%left: i32 {attn.min = 0 : i32}) {
  %w = attn.window [%left, 0]
  attn.softmax union(%w)
}
attn.pattern @tree(%ancestors: memref<?xi64>) q_origin(end) {
  %m = attn.tree %ancestors : memref<?xi64>
  attn.softmax union(%m)
}
attn.pattern @trees(%trees: memref<?x?xi64>, %drafts: memref<?xi32>) q_origin(end) {
  %m = attn.tree %trees : memref<?x?xi64> drafts %drafts : memref<?xi32>
  attn.softmax union(%m)
}
attn.pattern @packed(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used: memref<?xi32>) {
  %c = attn.causal
  %m = attn.documents %c at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
  attn.softmax union(%m)
}
attn.pattern @lists(%offsets: memref<1x1x?xi32>, %indices: memref<?xi32>) {
  %m = attn.csr %offsets, %indices : memref<1x1x?xi32>, memref<?xi32>
  attn.softmax union(%m)
}
