// Causal inside documents: a packed batch, rows of all documents behind one another (batch 1), no query sees another
// document. Positions count from the start of the query's document.
//   cu  [documents + 1] where documents begin, and where the last one ends
// Kept pairs: the sum of n_s (n_s + 1) / 2 over documents of n_s tokens, per head.
// Source: cu_seqlens of FlashAttention; document masking of packed pre-training (Llama 3, 2024).
attn.pattern @document(%cu: memref<?xi32> {attn.doc = "where documents begin, and where the last one ends"}) {
  %c = attn.causal
  %m = attn.documents %c at %cu : memref<?xi32>
  attn.softmax union(%m)
}
