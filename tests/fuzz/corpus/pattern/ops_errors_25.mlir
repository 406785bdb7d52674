attn.pattern @bad() {
  %m = "attn.heads"() : () -> !attn.mask
  attn.softmax union(%m)
}
