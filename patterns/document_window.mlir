// Sliding window inside documents whose queries are the last of their keys: chunked prefill or decode of a ragged batch.
// The last query of a document sees its last key in use.
//   cu_q    [documents + 1] where documents begin among the queries, and where the last one ends
//   cu_k    [documents + 1] the same among the keys
//   used_k  [documents] keys of each document that are in use, its first ones
//   left    keys before the query, in tokens
// Kept pairs: the sum over all queries of min(left + 1, keys of the document up to the query), per head.
// Source: cu_seqlens_q, cu_seqlens_k, seqused_k and window_size of FlashAttention.
attn.pattern @document_window(
    %cu_q: memref<?xi32> {attn.doc = "where documents begin among the queries, and where the last one ends"},
    %cu_k: memref<?xi32> {attn.doc = "where documents begin among the keys, and where the last one ends"},
    %used_k: memref<?xi32> {attn.doc = "keys of each document that are in use"},
    %left: i32 {attn.default = 1023 : i32, attn.doc = "keys before the query, in tokens"}) q_origin(end) {
  %w = attn.window [%left, 0]
  %m = attn.documents %w at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used_k : memref<?xi32>
  attn.softmax union(%m)
}
