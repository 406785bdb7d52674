attn.pattern @bad(%left: i64) {
  %m = attn.full
  attn.softmax union(%m)
}
