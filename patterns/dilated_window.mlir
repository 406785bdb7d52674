// Dilated window: a query sees the keys of its own residue class modulo 4 within `half` steps to each side.
//   half  steps of 4 tokens to each side; 1024 steps are 4096 tokens and 2049 keys
// Kept pairs: about n (2 half + 1) per head.
// Source: Beltagy et al., "Longformer" (2020), dilated sliding window; NATTEN's dilation in one dimension.
attn.pattern @dilated_window(%half: i32 {attn.default = 1024 : i32, attn.doc = "steps of 4 tokens to each side"}) {
  %w = attn.window [%half, %half]
  %m = attn.dilate %w by 4 rule(every)
  attn.softmax union(%m)
}
