// A causal window and every fourth row with every fourth key: two row lattices, one kernel or two (chained_mib=32).
attn.pattern @window_dilated(%left: i32 {attn.default = 1023 : i32, attn.min = 0 : i32}) {
  %w = attn.window [%left, 0]
  %c = attn.causal
  %d = attn.dilate %c by 4 at 1
  %m = attn.or %w, %d
  attn.softmax union(%m)
}
