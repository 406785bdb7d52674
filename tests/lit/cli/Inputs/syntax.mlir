attn.pattern @syntax() {
  %m = attn.window [4, 0
  attn.softmax union(%m)
}
