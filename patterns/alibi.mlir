// Causal attention with linear biases: the score of a key falls with its distance, at a slope for each head.
//   slopes of H heads: 2^(-8 (h + 1) / N) for h < N, the largest power of two up to H, then every other slope of 2 N heads
// Kept pairs: n (n + 1) / 2 per head for n queries and n keys.
// Source: Press, Smith, Lewis, "Train Short, Test Long" (2022); its reference code for H that are no powers of two.
attn.pattern @alibi() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.alibi %s
  attn.softmax union(%m) of %t
}
