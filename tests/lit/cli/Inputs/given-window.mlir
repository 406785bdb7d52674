attn.pattern @given_window(%left: i32) q_origin(given) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}
