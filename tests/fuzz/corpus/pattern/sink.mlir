attn.pattern @sink(%sinks: memref<?xf32> {attn.doc = "a score for each head"}) {
  %m = attn.causal
  attn.softmax union(%m) sink %sinks : memref<?xf32>
}
