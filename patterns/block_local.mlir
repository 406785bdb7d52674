// Block-local attention: the sequence is cut into blocks, a query sees every key of its own block.
//   block  tokens of a block; the last one may be short
// Kept pairs: n block per head.
// Source: Qiu et al., "Blockwise Self-Attention" (2019); the local half of many long-context models.
attn.pattern @block_local(%block: i32 {attn.default = 512 : i32, attn.min = 1 : i32,
                                       attn.doc = "tokens of a block"}) {
  %f = attn.full
  %m = attn.segment %f by [%block]
  attn.softmax union(%m)
}
