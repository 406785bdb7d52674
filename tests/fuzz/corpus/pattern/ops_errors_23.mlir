attn.pattern @bad() {
  %m = "attn.and"() : () -> !attn.mask
  attn.softmax union(%m)
}
