attn.pattern @tree_decode(%ancestors: memref<?xi64>) q_origin(end) {
  %m = attn.tree %ancestors : memref<?xi64>
  attn.softmax union(%m)
}
