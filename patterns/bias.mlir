// Causal attention whose scores get an additive bias from a tensor, one number for each pair and head, the same for
// every batch element: learned position biases, and masks that come as a tensor.
// density: (n + 1) / (2 n)
attn.pattern @bias(%bias: memref<1x?x?x?xbf16> {attn.doc = "what is added to the score of each pair, by head, query and key"}) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.bias %s, %bias : memref<1x?x?x?xbf16>
  attn.softmax union(%m) of %t
}
