attn.pattern @p() {
  %c = attn.causal
  %b = attn.blocks %c by [128]
  %s = attn.segment %b by [1073741824]
  attn.softmax union(%s, %b)
}
