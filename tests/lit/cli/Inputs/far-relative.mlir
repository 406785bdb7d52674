attn.pattern @p(%table: memref<1x9xf32>, %reach: i32) {
  %m = attn.full
  %s = attn.scaled
  %t = attn.relative %s, %table at [%reach] : memref<1x9xf32>
  attn.softmax union(%m) of %t
}
