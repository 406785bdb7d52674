attn.pattern @segment_of_nothing(%x: i32) {
  %m = attn.segment %x
  attn.softmax union(%m)
}
