attn.pattern @block_local(%block: i32 {attn.default = 512 : i32, attn.min = 1 : i32,
                                       attn.doc = "tokens of a block"}) {
  %f = attn.full
  %m = attn.segment %f by [%block]
  attn.softmax union(%m)
}
