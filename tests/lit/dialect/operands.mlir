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

// CHECK-LABEL: attn.pattern @documents(%cu: memref<?xi32>, %cu_k: memref<?xi32>, %used: memref<?xi32>) {
attn.pattern @documents(%cu: memref<?xi32>, %cu_k: memref<?xi32>, %used: memref<?xi32>) {
  %m = attn.causal
  // CHECK: attn.documents %{{.*}} at %cu : memref<?xi32>
  %a = attn.documents %m at %cu : memref<?xi32>
  // CHECK: attn.documents %{{.*}} at %cu, %cu_k : memref<?xi32>, memref<?xi32>
  %b = attn.documents %m at %cu, %cu_k : memref<?xi32>, memref<?xi32>
  // CHECK: attn.documents %{{.*}} at %cu, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
  %c = attn.documents %m at %cu, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
  %d = attn.or %a, %b, %c
  attn.softmax union(%d)
}

// CHECK-LABEL: attn.pattern @drafts(%ancestors: memref<?xi64>) q_origin(end) {
attn.pattern @drafts(%ancestors: memref<?xi64>) q_origin(end) {
  // CHECK: attn.tree %ancestors : memref<?xi64>
  %m = attn.tree %ancestors : memref<?xi64>
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @trees(%ancestors: memref<?x?xi64>, %one: memref<1x7xi64>, %drafts: memref<?xi32>) q_origin(end) {
attn.pattern @trees(%ancestors: memref<?x?xi64>, %one: memref<1x7xi64>, %drafts: memref<?xi32>) q_origin(end) {
  // CHECK: attn.tree %ancestors : memref<?x?xi64> drafts %drafts : memref<?xi32>
  %a = attn.tree %ancestors : memref<?x?xi64> drafts %drafts : memref<?xi32>
  // CHECK: attn.tree %ancestors : memref<?x?xi64>{{$}}
  %b = attn.tree %ancestors : memref<?x?xi64>
  // CHECK: attn.tree %one : memref<1x7xi64> drafts %drafts : memref<?xi32>
  %c = attn.tree %one : memref<1x7xi64> drafts %drafts : memref<?xi32>
  %m = attn.or %a, %b, %c
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @lists(%offsets: memref<1x?x?xi32>, %indices: memref<?xi32>) {
attn.pattern @lists(%offsets: memref<1x?x?xi32>, %indices: memref<?xi32>) {
  // CHECK: attn.csr %offsets, %indices : memref<1x?x?xi32>, memref<?xi32>
  %l = attn.csr %offsets, %indices : memref<1x?x?xi32>, memref<?xi32>
  %m = attn.blocks %l by [64]
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @sinks(%each: memref<?xf32>) {
attn.pattern @sinks(%each: memref<?xf32>) {
  %m = attn.causal
  // CHECK: attn.softmax union(%{{.*}}) sink %each : memref<?xf32>
  attn.softmax union(%m) sink %each : memref<?xf32>
}

// CHECK-LABEL: attn.pattern @one_sink(%one: f32) {
attn.pattern @one_sink(%one: f32) {
  %m = attn.causal
  // CHECK: attn.softmax union(%{{.*}}) sink %one gradient(detached)
  attn.softmax union(%m) sink %one gradient(detached)
}

// CHECK-LABEL: attn.pattern @off_by_one() {
attn.pattern @off_by_one() {
  %m = attn.causal
  // CHECK: attn.softmax union(%{{.*}}) sink 0.000000e+00
  attn.softmax union(%m) sink 0.0
}
