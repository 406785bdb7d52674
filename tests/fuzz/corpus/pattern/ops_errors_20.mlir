attn.pattern @bad() {
  %f = attn.full
  %m = attn.segment %f by [0]
  attn.softmax union(%m)
}
