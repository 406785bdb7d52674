attn.pattern @far_segment() {
  %a = attn.causal
  %b = attn.segment %a by [1073741824]
  %c = attn.dilate %b by 64 at 3
  attn.softmax union(%c)
}
