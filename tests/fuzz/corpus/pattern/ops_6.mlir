attn.pattern @box_and_prefix(%length: i32) {
  %b = attn.box [0, %length, 128, 256]
  %p = attn.prefix [%length]
  %s = attn.prefix [64]
  %m = attn.or %b, %p, %s
  attn.softmax union(%m)
}
