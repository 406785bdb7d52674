attn.pattern @relative_bias(%table: memref<?x?xf32> {attn.doc = "added to the score of a pair, in the unit of scores"},
                            %reach: i32 {attn.default = 127 : i32, attn.doc = "entry of distance 0"}) {
  %m = attn.full
  %s = attn.scaled
  %t = attn.relative %s, %table at [%reach] : memref<?x?xf32>
  attn.softmax union(%m) of %t
}
