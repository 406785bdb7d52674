attn.pattern @full() {
  %m = attn.random count 7 seed 7
  attn.softmax union(%m)
}
