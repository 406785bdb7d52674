attn.pattern @bad() {
  %m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    attn.yield %q : i32
  }
  attn.softmax union(%m)
}
