attn.pattern @negative_window() {
  %m = attn.window [-1, 0]
  attn.softmax union(%m)
}
