attn.pattern @document(%cu: memref<?xi32>) {
  %c = attn.causal
  %m = attn.documents %c at %cu : memref<?xi32>
  attn.softmax union(%m)
}
