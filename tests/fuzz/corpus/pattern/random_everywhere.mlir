attn.pattern @full() {
  %m = attn.random count 2147483647 seed 1073741824
  attn.softmax union(%m)
}
