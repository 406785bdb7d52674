attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.score_map %s {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %x : f32
  }
  attn.softmax union(%m) of %t
}
