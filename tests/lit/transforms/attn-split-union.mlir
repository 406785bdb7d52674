// RUN: heddle-opt %s --pass-pipeline='builtin.module(attn.pattern(attn-split-union))' | FileCheck %s

// CHECK-LABEL: attn.pattern @the_finest_lattice_first() {
attn.pattern @the_finest_lattice_first() {
  // CHECK: %[[W:.*]] = attn.window [20, 0]
  // CHECK: %[[NEAR:.*]] = attn.window [20, 0]
  // CHECK: %[[N:.*]] = attn.not %[[NEAR]]
  // CHECK: %[[S:.*]] = attn.stride k by 8 at 3
  // CHECK: %[[FAR:.*]] = attn.and %[[N]], %[[S]]
  // CHECK: attn.softmax lse(%[[W]], %[[FAR]])
  %s = attn.stride k by 8 at 3
  %w = attn.window [20, 0]
  %m = attn.or %s, %w
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @one_lattice_is_one_branch() {
attn.pattern @one_lattice_is_one_branch() {
  // CHECK: %[[M:.*]] = attn.or
  // CHECK: attn.softmax union(%[[M]])
  %w = attn.window [20, 0]
  %c = attn.cols [4, 0]
  %m = attn.or %w, %c
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @masks_that_never_meet() {
attn.pattern @masks_that_never_meet() {
  // CHECK-NOT: attn.not
  // CHECK: %[[A:.*]] = attn.stride k by 8 at 3
  // CHECK: %[[B:.*]] = attn.stride k by 8 at 4
  // CHECK: attn.softmax lse(%[[A]], %[[B]])
  %a = attn.stride k by 8 at 3
  %b = attn.stride k by 8 at 4
  attn.softmax union(%a, %b)
}

// CHECK-LABEL: attn.pattern @below_heads() {
attn.pattern @below_heads() {
  // CHECK: %[[W:.*]] = attn.window [20, 0]
  // CHECK: %[[NONE:.*]] = attn.box [0, 0, 0, 0]
  // CHECK: %[[S:.*]] = attn.stride k by 8 at 3
  // CHECK: %[[FAR:.*]] = attn.and %{{.*}}, %[[S]]
  // CHECK: %[[REST:.*]] = attn.heads %[[NONE]], %[[FAR]]
  // CHECK: attn.softmax lse(%[[W]], %[[REST]])
  %s = attn.stride k by 8 at 3
  %w = attn.window [20, 0]
  %u = attn.or %w, %s
  %m = attn.heads %w, %u
  attn.softmax union(%m)
}
