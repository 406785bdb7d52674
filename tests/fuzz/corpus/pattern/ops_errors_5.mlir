attn.pattern @bad() {
  %m = attn.cols [0, -1]
  attn.softmax union(%m)
}
