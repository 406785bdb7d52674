attn.pattern @bad(%cap: i32) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.softcap %s by %cap
  attn.softmax union(%m) of %t
}
