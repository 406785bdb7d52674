attn.pattern @bad() {
  %m = attn.full
}
