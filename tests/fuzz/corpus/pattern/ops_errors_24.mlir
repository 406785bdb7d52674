attn.pattern @bad() {
  %m = "attn.or"() : () -> !attn.mask
  attn.softmax union(%m)
}
