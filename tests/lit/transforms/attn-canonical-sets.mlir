// RUN: heddle-opt %s --pass-pipeline='builtin.module(attn.pattern(attn-canonical-sets,cse))' | FileCheck %s

// CHECK-LABEL: attn.pattern @a_band_is_one_window
// CHECK: %[[NEAR:.*]] = attn.window [%left, 0]
// CHECK: %[[C:.*]] = attn.causal
// CHECK: %[[S:.*]] = attn.stride k by 128 at 127
// CHECK: %[[FAR:.*]] = attn.and %[[C]], %[[S]]
// CHECK: %[[M:.*]] = attn.or %[[NEAR]], %[[FAR]]
// CHECK: attn.softmax union(%[[M]])
attn.pattern @a_band_is_one_window(%left: i32) {
  %c = attn.causal
  %w = attn.window [%left, 8]
  %k = attn.stride k by 128 at 127
  %u = attn.or %k, %w
  %m = attn.and %c, %u
  attn.softmax union(%m)
}

// What a level leaves out of the one before is kept by that one, whatever the sizes are.
// CHECK-LABEL: attn.pattern @levels
// CHECK-NOT: attn.not
// CHECK: %[[W0:.*]] = attn.window [%near, 0]
// CHECK: %[[W1:.*]] = attn.window [%far, 0]
// CHECK: %[[K1:.*]] = attn.stride k by 2 at 0
// CHECK: %[[L1:.*]] = attn.and %[[W1]], %[[K1]]
// CHECK: attn.or %[[W0]], %[[L1]]
attn.pattern @levels(%near: i32, %far: i32) {
  %w0 = attn.window [%near, 0]
  %w1 = attn.window [%far, 0]
  %n0 = attn.not %w0
  %k1 = attn.stride k by 2 at 0
  %l1 = attn.and %k1, %w1, %n0
  %m = attn.or %l1, %w0
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @a_union_is_no_more_than_its_parts
// CHECK: %[[W:.*]] = attn.window [5, 3]
// CHECK-NEXT: attn.softmax union(%[[W]])
attn.pattern @a_union_is_no_more_than_its_parts() {
  %w = attn.window [5, 3]
  %v = attn.window [5, 1]
  %n = attn.not %v
  %o = attn.and %w, %n
  attn.softmax union(%v, %o)
}

// CHECK-LABEL: attn.pattern @bands_are_met_inside
// CHECK: %[[C:.*]] = attn.causal
// CHECK: %[[D:.*]] = attn.dilate %[[C]] by 4 at 1
// CHECK: %[[S:.*]] = attn.segment %[[D]] by [%length]
// CHECK: attn.softmax union(%[[S]])
attn.pattern @bands_are_met_inside(%length: i32) {
  %f = attn.full
  %d = attn.dilate %f by 4 at 1
  %s = attn.segment %d by [%length]
  %c = attn.causal
  %m = attn.and %c, %s
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @heads_are_outside
// CHECK: %[[A:.*]] = attn.blocks
// CHECK: %[[D:.*]] = attn.dilate %{{.*}} by 2 at 1
// CHECK: %[[B:.*]] = attn.and %[[A]], %[[D]]
// CHECK: %[[H:.*]] = attn.heads %[[A]], %[[B]]
// CHECK: attn.softmax union(%[[H]])
attn.pattern @heads_are_outside() {
  %w = attn.window [1, 1]
  %b = attn.blocks %w by [64]
  %f = attn.full
  %d = attn.dilate %f by 2 rule(group)
  %h = attn.heads %f, %d
  %m = attn.and %h, %b
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @common_factors_are_in_front
// CHECK: %[[U:.*]] = attn.or
// CHECK: %[[B:.*]] = attn.blocks %[[U]] by [64]
// CHECK: attn.and %[[B]], %
attn.pattern @common_factors_are_in_front(%count: i32) {
  %w = attn.window [1, 0]
  %r = attn.random count %count seed 0
  %a = attn.blocks %w by [64]
  %b = attn.blocks %r by [64]
  %c = attn.causal
  %ac = attn.and %a, %c
  %bc = attn.and %c, %b
  %m = attn.or %bc, %ac
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @nothing
// CHECK: %[[N:.*]] = attn.box [0, 0, 0, 0]
// CHECK-NEXT: attn.softmax lse(%[[N]], %[[N]])
attn.pattern @nothing() {
  %a = attn.stride k by 4 at 1
  %b = attn.stride k by 6 at 2
  %m = attn.and %a, %b
  %w = attn.window [3, 3]
  %n = attn.not %w
  %o = attn.and %w, %n
  attn.softmax lse(%m, %o)
}

// CHECK-LABEL: attn.pattern @scores_name_the_documents_that_they_count_in
// CHECK-NOT: attn.documents
// CHECK: attn.scaled at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>
attn.pattern @scores_name_the_documents_that_they_count_in(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>) {
  %c = attn.causal
  %d = attn.documents %c at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>
  %f = attn.full
  %m = attn.or %d, %f
  %s = attn.scaled
  %t = attn.alibi %s
  attn.softmax union(%m) of %t
}

// CHECK-LABEL: attn.pattern @scores_name_no_documents_that_make_no_difference
// CHECK: %{{.*}} = attn.scaled{{$}}
attn.pattern @scores_name_no_documents_that_make_no_difference(%cu: memref<?xi32>) {
  %c = attn.causal
  %m = attn.documents %c at %cu : memref<?xi32>
  %s = attn.scaled at %cu : memref<?xi32>
  %t = attn.alibi %s
  attn.softmax union(%m) of %t
}
