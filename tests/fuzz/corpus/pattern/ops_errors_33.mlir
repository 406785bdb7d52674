attn.pattern @bad() {
  %m = attn.full
  attn.yield %m : !attn.mask
}
