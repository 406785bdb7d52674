attn.pattern @bad() {
  %m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    %f = attn.full
    %c = arith.cmpi sle, %k, %q : i32
    attn.yield %c : i1
  }
  attn.softmax union(%m)
}
