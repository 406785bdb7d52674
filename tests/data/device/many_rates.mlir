// Eight head groups with a dilation rate each, 1 to 8: more tensor maps than 4096 bytes of parameters hold.
attn.pattern @many_rates() {
  %c = attn.causal
  %d1 = attn.dilate %c by 1 rule(every)
  %d2 = attn.dilate %c by 2 rule(every)
  %d3 = attn.dilate %c by 3 rule(every)
  %d4 = attn.dilate %c by 4 rule(every)
  %d5 = attn.dilate %c by 5 rule(every)
  %d6 = attn.dilate %c by 6 rule(every)
  %d7 = attn.dilate %c by 7 rule(every)
  %d8 = attn.dilate %c by 8 rule(every)
  %m = attn.heads %d1, %d2, %d3, %d4, %d5, %d6, %d7, %d8
  attn.softmax union(%m)
}
