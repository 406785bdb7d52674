attn.pattern @bad() {
  %m = attn.full
  %c = arith.constant 1 : i32
  attn.softmax union(%m)
}
