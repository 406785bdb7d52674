attn.pattern @full() {
  %m = attn.full
  attn.softmax union(%m)
}
