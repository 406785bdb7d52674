// Full attention whose scores get an entry of a table for each head and distance; what is further away than the table
// reaches gets the last entry of its side.
// density: 1
attn.pattern @relative_bias(%table: memref<?x?xf32> {attn.doc = "what is added to scores, by head and distance"},
                            %reach: i32 {attn.default = 127 : i32, attn.doc = "the entry of distance 0"}) {
  %m = attn.full
  %s = attn.scaled
  %t = attn.relative %s, %table at [%reach] : memref<?x?xf32>
  attn.softmax union(%m) of %t
}
