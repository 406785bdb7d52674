attn.pattern @even_keys() {
  %m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %bit = arith.andi %k, %one : i32
    %c = arith.cmpi eq, %bit, %zero : i32
    attn.yield %c : i1
  }
  attn.softmax union(%m)
}
