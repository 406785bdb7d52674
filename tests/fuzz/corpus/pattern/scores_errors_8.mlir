attn.pattern @bad(%cap: f32 {attn.default = 9 : i32}) {
  %m = attn.causal
  attn.softmax union(%m)
}
