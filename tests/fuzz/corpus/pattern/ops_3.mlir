attn.pattern @sizes_keep_their_names(%left: i32 {attn.default = 7 : i32, attn.doc = "tokens", attn.min = 1 : i32}, %right: i32) {
  %a = attn.window [%left, %right]
  %b = attn.window [4, %left]
  %m = attn.or %a, %b
  attn.softmax union(%m)
}
