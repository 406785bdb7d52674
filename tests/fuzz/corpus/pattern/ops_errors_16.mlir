attn.pattern @bad() {
  %m = attn.stride k by 4 rule(every)
  attn.softmax union(%m)
}
