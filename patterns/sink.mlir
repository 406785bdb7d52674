// Causal attention with a learned sink: every head has one more key, with a score of its own and no value, so that a head
// may attend to nothing. Off by one softmax is a sink of 0.
//   sinks  one score for each head, f32, in natural units
// Kept pairs: n (n + 1) / 2 per head for n queries and n keys.
// Source: Xiao et al., "Efficient Streaming Language Models with Attention Sinks" (2024), its learnable sink; gpt-oss (2025)
// in this form.
attn.pattern @sink(%sinks: memref<?xf32> {attn.doc = "a score for each head"}) {
  %m = attn.causal
  attn.softmax union(%m) sink %sinks : memref<?xf32>
}
