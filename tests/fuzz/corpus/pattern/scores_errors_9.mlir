attn.pattern @bad(%cap: f64) {
  %m = attn.causal
  attn.softmax union(%m)
}
