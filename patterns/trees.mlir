// Trees of draft tokens, one for each sequence of a batch: its last queries are guesses that branch, and those before them, a
// piece of a prompt or a single token, are causal; so one call serves all. The queries are the last of the keys.
//   ancestors  [batch, n], n at most 64: bit j of entry [b, i] says that guess i of element b sees guess j
//   drafts     [batch]: how many guesses c element b has, 0 to n
// Kept pairs: (Q - c) (K - Q) + (Q - c) (Q - c + 1) / 2 + c (K - c), Q and K the lengths, and one for each bit of a guess that
// is set, per head of an element.
// Source: Miao et al., "SpecInfer" (2023); Li et al., "EAGLE-2" (2024).
attn.pattern @trees(%ancestors: memref<?x?xi64> {attn.doc = "which draft tokens each draft token of a batch element sees, a bit each"},
                    %drafts: memref<?xi32> {attn.doc = "how many draft tokens each batch element has, its last ones"}) q_origin(end) {
  %m = attn.tree %ancestors : memref<?x?xi64> drafts %drafts : memref<?xi32>
  attn.softmax union(%m)
}
