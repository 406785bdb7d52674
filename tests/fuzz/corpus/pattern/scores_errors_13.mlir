attn.pattern @bad(%heat: f32) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.score_map %s with %heat : f32 {
  ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32, %n: i32):
    attn.yield %x : f32
  }
  attn.softmax union(%m) of %t
}
