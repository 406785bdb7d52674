attn.pattern @trees(%ancestors: memref<?x?xi64>, %drafts: memref<?xi32>) q_origin(end) {
  %m = attn.tree %ancestors : memref<?x?xi64> drafts %drafts : memref<?xi32>
  attn.softmax union(%m)
}
