// Causal attention with capped scores: s becomes cap * tanh(s / cap), so that no score passes the cap.
//   cap  in the unit of scores, natural logarithms of weights; Gemma 2 has 50
// Kept pairs: n (n + 1) / 2 per head for n queries and n keys.
// Source: Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size" (2024).
attn.pattern @softcap(%cap: f32 {attn.default = 50.0 : f32, attn.min = 1.0 : f32, attn.max = 512.0 : f32,
                                 attn.doc = "bound of scores"}) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.softcap %s by %cap
  attn.softmax union(%m) of %t
}
