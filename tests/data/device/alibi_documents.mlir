// Scores that count positions inside documents, whose numbers of queries and keys differ and whose keys are not all used:
// ALiBi and a table by distance.
attn.pattern @alibi_documents(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used: memref<?xi32>, %table: memref<?x63xf32>) q_origin(end) {
  %w = attn.window [300, 20]
  %m = attn.documents %w at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
  %s = attn.scaled
  %a = attn.alibi %s
  %t = attn.relative %a, %table at [31] : memref<?x63xf32>
  attn.softmax union(%m) of %t
}
