attn.pattern @softcap(%cap: f32 {attn.default = 50.0 : f32, attn.min = 1.0 : f32, attn.max = 512.0 : f32,
                                 attn.doc = "bound of scores"}) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.softcap %s by %cap
  attn.softmax union(%m) of %t
}
