// Tensor arguments and the ops that read them parse, verify and print as they were written.
// RUN: heddle-opt %s | heddle-opt | FileCheck %s
// RUN: heddle-opt %s | FileCheck %s

// CHECK-LABEL: attn.pattern @scores(%bias: memref<1x?x?x?xbf16> {attn.doc = "by head, query and key"}, %reach: i32, %table: memref<?x?xf16>) {
attn.pattern @scores(%bias: memref<1x?x?x?xbf16> {attn.doc = "by head, query and key"}, %reach: i32, %table: memref<?x?xf16>) {
  %m = attn.causal
  %s = attn.scaled
  // CHECK: %[[T:.*]] = attn.bias %{{.*}}, %bias : memref<1x?x?x?xbf16>
  %t = attn.bias %s, %bias : memref<1x?x?x?xbf16>
  // CHECK: %[[U:.*]] = attn.relative %[[T]], %table at [%reach] : memref<?x?xf16>
  %u = attn.relative %t, %table at [%reach] : memref<?x?xf16>
  // CHECK: attn.relative %[[U]], %table at [64] : memref<?x?xf16>
  %v = attn.relative %u, %table at [64] : memref<?x?xf16>
  attn.softmax union(%m) of %v
}
