attn.pattern @far_blocks(%size: i32, %last: i32) {
  %a = attn.cols [0, %last]
  %b = attn.blocks %a by [%size]
  %c = attn.not %b
  %d = attn.predicate {
  ^bb0(%batch: i32, %head: i32, %q: i32, %k: i32):
    %e = arith.cmpi sle, %k, %q : i32
    attn.yield %e : i1
  }
  %f = attn.and %c, %d
  attn.softmax union(%f)
}
