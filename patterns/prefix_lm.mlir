// Prefix-LM: every query sees the prefix, and of the rest the keys at its own position and before.
//   length  tokens of the prefix
// Kept pairs: n (n + 1) / 2 + length (length - 1) / 2 per head for n >= length queries and keys.
// Source: Raffel et al., "Exploring the Limits of Transfer Learning" (T5, 2020); Dong et al., "UniLM" (2019).
attn.pattern @prefix_lm(%length: i32 {attn.default = 1024 : i32, attn.doc = "tokens of the prefix"}) {
  %m = attn.prefix [%length]
  attn.softmax union(%m)
}
