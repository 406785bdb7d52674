// Dense attention: every query sees every key.
// Kept pairs: seqlen_q * seqlen_k per head.
// Source: Vaswani et al., "Attention Is All You Need" (2017).
attn.pattern @full() {
  %m = attn.full
  attn.softmax union(%m)
}
