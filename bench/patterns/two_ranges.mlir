// Every query sees the first and the last keys: two ranges of full key tiles in each query tile, far apart.
// 1920 keys in each are whole tiles of 48, 64, 80, 96 and 128, and so is a start at a multiple of 1920.
// Kept pairs: seqlen_q * (first + last).
attn.pattern @two_ranges(%first: i32 {attn.default = 1920 : i32, attn.doc = "keys at the start"},
                         %last: i32 {attn.default = 1920 : i32, attn.doc = "keys at the end"}) {
  %m = attn.cols [%first, %last]
  attn.softmax union(%m)
}
