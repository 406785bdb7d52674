attn.pattern @chain(%cap: f32 {attn.default = 50.0 : f32, attn.min = 1.0 : f32, attn.max = 100.0 : f32}) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.softcap %s by 30.5
  %u = attn.alibi %t
  %v = attn.softcap %u by %cap
  attn.softmax union(%m) of %v
}
