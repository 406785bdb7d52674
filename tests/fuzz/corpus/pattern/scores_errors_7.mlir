attn.pattern @bad(%cap: f32 {attn.default = 9.0 : f32, attn.max = 8.0 : f32}) {
  %m = attn.causal
  attn.softmax union(%m)
}
