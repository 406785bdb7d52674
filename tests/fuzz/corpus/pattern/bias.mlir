attn.pattern @bias(%bias: memref<1x?x?x?xbf16> {attn.doc = "added to the score of each pair, in the unit of scores, natural logarithms of weights"}) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.bias %s, %bias : memref<1x?x?x?xbf16>
  attn.softmax union(%m) of %t
}
