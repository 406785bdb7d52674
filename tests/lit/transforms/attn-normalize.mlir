// RUN: heddle-opt %s --pass-pipeline='builtin.module(attn.pattern(attn-normalize,canonicalize))' | FileCheck %s

// CHECK-LABEL: attn.pattern @nested_or_is_flat() {
attn.pattern @nested_or_is_flat() {
  // CHECK-DAG: %[[A:.*]] = attn.causal
  // CHECK-DAG: %[[B:.*]] = attn.rows [1, 0]
  // CHECK-DAG: %[[C:.*]] = attn.cols [1, 0]
  // CHECK: %[[M:.*]] = attn.or %[[A]], %[[B]], %[[C]]
  // CHECK-NOT: attn.or
  // CHECK: attn.softmax union(%[[M]])
  %a = attn.causal
  %b = attn.rows [1, 0]
  %c = attn.cols [1, 0]
  %ab = attn.or %a, %b
  %m = attn.or %ab, %c
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @not_goes_to_the_leaves() {
attn.pattern @not_goes_to_the_leaves() {
  // CHECK-DAG: %[[A:.*]] = attn.causal
  // CHECK-DAG: %[[B:.*]] = attn.rows [1, 0]
  // CHECK-DAG: %[[NA:.*]] = attn.not %[[A]]
  // CHECK-DAG: %[[NB:.*]] = attn.not %[[B]]
  // CHECK: attn.and %[[NA]], %[[NB]]
  %a = attn.causal
  %b = attn.rows [1, 0]
  %ab = attn.or %a, %b
  %m = attn.not %ab
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @full_changes_no_and() {
attn.pattern @full_changes_no_and() {
  // CHECK-NOT: attn.full
  // CHECK: %[[A:.*]] = attn.causal
  // CHECK-NEXT: attn.softmax union(%[[A]])
  %a = attn.causal
  %f = attn.full
  %m = attn.and %a, %f
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @full_takes_every_or() {
attn.pattern @full_takes_every_or() {
  // CHECK: %[[F:.*]] = attn.full
  // CHECK: attn.softmax union(%[[F]])
  %a = attn.causal
  %f = attn.full
  %m = attn.or %a, %f
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @dilation_by_one_is_none() {
attn.pattern @dilation_by_one_is_none() {
  // CHECK-NOT: attn.dilate
  // CHECK: attn.softmax
  %a = attn.causal
  %m = attn.dilate %a by 1 at 0
  attn.softmax union(%m)
}

// CHECK-LABEL: attn.pattern @an_operand_counts_once() {
attn.pattern @an_operand_counts_once() {
  // CHECK: %[[A:.*]] = attn.causal
  // CHECK-NEXT: attn.softmax union(%[[A]])
  %a = attn.causal
  %m = attn.or %a, %a
  attn.softmax union(%m)
}

// Two branches of lse are two, whatever they keep.
// CHECK-LABEL: attn.pattern @branches_stay() {
attn.pattern @branches_stay() {
  // CHECK: attn.softmax lse(%[[A:.*]], %[[A]])
  %a = attn.causal
  attn.softmax lse(%a, %a)
}
