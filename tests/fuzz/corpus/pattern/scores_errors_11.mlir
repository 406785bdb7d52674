attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.score_map %s {
  ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32):
    attn.yield %q : i32
  }
  attn.softmax union(%m) of %t
}
