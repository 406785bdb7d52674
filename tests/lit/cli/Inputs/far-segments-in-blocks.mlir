attn.pattern @p(%n0: i32, %n1: i32) {
  %f = attn.full
  %s = attn.segment %f by [%n1]
  %m = attn.blocks %s by [%n0]
  attn.softmax union(%m)
}
