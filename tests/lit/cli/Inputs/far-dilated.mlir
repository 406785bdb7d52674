attn.pattern @far_dilated(%left: i32, %first: i32) {
  %a = attn.window [%left, 2147483647]
  %b = attn.cols [%first, 0]
  %c = attn.and %a, %b
  %d = attn.dilate %c by 4 rule(every)
  attn.softmax union(%d)
}
