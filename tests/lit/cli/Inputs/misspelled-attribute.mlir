attn.pattern @misspelled_attribute(%left: i32 {attn.defualt = 4 : i32}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}
