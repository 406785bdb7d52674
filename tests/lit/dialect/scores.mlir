// Score ops parse, verify and print as they were written.
// RUN: heddle-opt %s | heddle-opt | FileCheck %s

// CHECK-LABEL: attn.pattern @chain(%cap: f32 {attn.default = 5.000000e+01 : f32, attn.max = 1.000000e+02 : f32, attn.min = 1.000000e+00 : f32}) {
attn.pattern @chain(%cap: f32 {attn.default = 50.0 : f32, attn.min = 1.0 : f32, attn.max = 100.0 : f32}) {
  %m = attn.causal
  // CHECK: %[[S:.*]] = attn.scaled
  %s = attn.scaled
  // CHECK: %[[T:.*]] = attn.softcap %[[S]] by 3.050000e+01
  %t = attn.softcap %s by 30.5
  // CHECK: %[[U:.*]] = attn.alibi %[[T]]
  %u = attn.alibi %t
  // CHECK: %[[V:.*]] = attn.softcap %[[U]] by %cap
  %v = attn.softcap %u by %cap
  // CHECK: attn.softmax union(%{{.*}}) of %[[V]]
  attn.softmax union(%m) of %v
}

// CHECK-LABEL: attn.pattern @branches_share_a_chain
attn.pattern @branches_share_a_chain() {
  %m = attn.causal
  %n = attn.full
  %s = attn.scaled
  %t = attn.alibi %s
  // CHECK: attn.softmax lse(%{{.*}}, %{{.*}}) of %{{.*}} gradient(detached)
  attn.softmax lse(%m, %n) of %t gradient(detached)
}

// CHECK-LABEL: attn.pattern @region
attn.pattern @region(%heat: f32) {
  %m = attn.causal
  %s = attn.scaled
  // CHECK: attn.score_map %{{.*}} with %heat : f32 {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: f32):
  %t = attn.score_map %s with %heat : f32 {
  ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32, %temperature: f32):
    %y = arith.divf %x, %temperature : f32
    // CHECK: attn.yield %{{.*}} : f32
    attn.yield %y : f32
  }
  attn.softmax union(%m) of %t
}

// CHECK-LABEL: attn.pattern @inside_documents
attn.pattern @inside_documents(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>, %used: memref<?xi32>) {
  %c = attn.causal
  %m = attn.documents %c at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
  // CHECK: attn.scaled at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
  %s = attn.scaled at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
  %t = attn.alibi %s
  attn.softmax union(%m) of %t
}
