attn.pattern @first() {
  %m = attn.full
  attn.softmax union(%m)
}
attn.pattern @second() {
  %m = attn.causal
  attn.softmax union(%m)
}
