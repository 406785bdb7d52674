// Every query sees the first keys: one range of full key tiles in each query tile. Beside two_ranges.mlir at the same
// number of keys this is what a second range costs a kernel.
// Kept pairs: seqlen_q * first.
attn.pattern @one_range(%first: i32 {attn.default = 3840 : i32, attn.doc = "keys at the start"}) {
  %m = attn.cols [%first, 0]
  attn.softmax union(%m)
}
