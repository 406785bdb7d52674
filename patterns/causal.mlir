// Causal attention: a query sees the keys at its own position and before.
// Kept pairs: n (n + 1) / 2 per head for n queries and n keys.
// Source: the decoder of Vaswani et al., "Attention Is All You Need" (2017).
attn.pattern @causal() {
  %m = attn.causal
  attn.softmax union(%m)
}
