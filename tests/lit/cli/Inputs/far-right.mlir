attn.pattern @far_right() {
  %a = attn.window [0, 2147483647]
  attn.softmax union(%a)
}
