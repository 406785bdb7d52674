// Every op reads back as it was printed, in the short and in the generic form.
// RUN: heddle-opt %s | FileCheck %s
// RUN: heddle-opt %s | heddle-opt | FileCheck %s
// RUN: heddle-opt %s --mlir-print-op-generic | heddle-opt | FileCheck %s

// CHECK-LABEL: attn.pattern @full() {
attn.pattern @full() {
  // CHECK: %[[M:.*]] = attn.full
  // CHECK: attn.softmax union(%[[M]])
  %m = attn.full
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @causal_from_the_end() q_origin(end) {
attn.pattern @causal_from_the_end() q_origin(end) {
  // CHECK: attn.causal
  %m = attn.causal
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @origin_given() q_origin(given) {
attn.pattern @origin_given() q_origin(given) {
  %m = attn.causal
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @sizes_keep_their_names(%left: i32 {attn.default = 7 : i32, attn.doc = "tokens", attn.min = 1 : i32}, %right: i32) {
attn.pattern @sizes_keep_their_names(%left: i32 {attn.default = 7 : i32, attn.doc = "tokens", attn.min = 1 : i32}, %right: i32) {
  // CHECK: attn.window [%left, %right]
  // CHECK: attn.window [4, %left]
  %a = attn.window [%left, %right]
  %b = attn.window [4, %left]
  %m = attn.or %a, %b
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @leaves() {
attn.pattern @leaves() {
  // CHECK: attn.rows [64, 0]
  %r = attn.rows [64, 0]
  // CHECK: attn.cols [0, 2]
  %c = attn.cols [0, 2]
  // CHECK: attn.stride k by 4 at 3
  %s0 = attn.stride k by 4 at 3
  // CHECK: attn.stride q by 2 rule(modulo)
  %s1 = attn.stride q by 2 rule(modulo)
  // CHECK: attn.stride q by 3 rule(block)
  %s2 = attn.stride q by 3 rule(block)
  %m = attn.or %r, %c, %s0, %s1, %s2
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @random(%count: i32, %seed: i32) {
attn.pattern @random(%count: i32, %seed: i32) {
  // CHECK: attn.random count 3 seed 7{{$}}
  %a = attn.random count 3 seed 7
  // CHECK: attn.random count %count seed 0 per_head
  %b = attn.random count %count seed 0 per_head
  // CHECK: attn.random count %count seed %seed{{$}}
  %c = attn.random count %count seed %seed
  %m = attn.or %a, %b, %c
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @blocks(%size: i32) {
attn.pattern @blocks(%size: i32) {
  %w = attn.window [1, 1]
  // CHECK: attn.blocks %{{.*}} by [64]
  %a = attn.blocks %w by [64]
  // CHECK: attn.blocks %{{.*}} by [%size]
  %b = attn.blocks %w by [%size]
  %m = attn.or %a, %b
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @box_and_prefix(%length: i32) {
attn.pattern @box_and_prefix(%length: i32) {
  // CHECK: attn.box [0, %length, 128, 256]
  %b = attn.box [0, %length, 128, 256]
  // CHECK: attn.prefix [%length]
  %p = attn.prefix [%length]
  // CHECK: attn.prefix [64]
  %s = attn.prefix [64]
  %m = attn.or %b, %p, %s
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @predicate() {
attn.pattern @predicate() {
  // CHECK: attn.predicate {
  // CHECK: ^bb0(%[[B:.*]]: i32, %[[H:.*]]: i32, %[[Q:.*]]: i32, %[[K:.*]]: i32):
  // CHECK:   %[[C:.*]] = arith.cmpi sle, %[[K]], %[[Q]] : i32
  // CHECK:   attn.yield %[[C]] : i1
  %m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    %c = arith.cmpi sle, %k, %q : i32
    attn.yield %c : i1
  }
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @algebra() {
attn.pattern @algebra() {
  %a = attn.causal
  %b = attn.window [3, 3]
  // CHECK: attn.and %[[A:.*]], %[[B:.*]]
  %c = attn.and %a, %b
  // CHECK: attn.or
  %d = attn.or %a, %b, %c
  // CHECK: attn.not
  %e = attn.not %d
  // CHECK: attn.heads
  %m = attn.heads %c, %e
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @pullbacks(%w: i32) {
attn.pattern @pullbacks(%w: i32) {
  %f = attn.full
  // CHECK: attn.dilate %{{.*}} by 4 at 3
  %a = attn.dilate %f by 4 at 3
  // CHECK: attn.dilate %{{.*}} by 2 rule(modulo)
  %b = attn.dilate %f by 2 rule(modulo)
  // CHECK: attn.dilate %{{.*}} by 2 rule(block)
  %c = attn.dilate %f by 2 rule(block)
  // CHECK: attn.dilate %{{.*}} by 2 rule(group)
  %d = attn.dilate %f by 2 rule(group)
  // CHECK: attn.dilate %{{.*}} by 2 rule(every)
  %e = attn.dilate %f by 2 rule(every)
  // CHECK: attn.segment %{{.*}} by [%w]
  %s = attn.segment %a by [%w]
  // CHECK: attn.segment %{{.*}} by [2048]
  %t = attn.segment %b by [2048]
  %m = attn.heads %s, %t, %c, %d, %e
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @branches() {
attn.pattern @branches() {
  %a = attn.causal
  %b = attn.full
  // CHECK: attn.softmax lse(%{{.*}}, %{{.*}}) gradient(detached)
  attn.softmax lse(%a, %b) gradient(detached)
}
