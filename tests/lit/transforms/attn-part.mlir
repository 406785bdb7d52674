// RUN: heddle-opt --attn-part %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: attn.pattern @longformer(%g: i32,
// CHECK-SAME: %whole_queries: i32 {attn.doc = "queries of the whole", attn.whole = "queries"}
// CHECK-SAME: %whole_keys: i32 {attn.doc = "keys of the whole", attn.whole = "keys"}
// CHECK-SAME: q_origin(given)
attn.pattern @longformer(%g: i32) {
  %r = attn.rows [%g, 0]
  %c = attn.cols [%g, 1]
  %m = attn.or %r, %c
  attn.softmax union(%m)
}

// -----

// A pattern of parts stays as it is.
// CHECK: attn.pattern @part(%n: i32 {attn.whole = "queries"}, %m: i32 {attn.whole = "keys"}) q_origin(given)
attn.pattern @part(%n: i32 {attn.whole = "queries"}, %m: i32 {attn.whole = "keys"}) q_origin(given) {
  %c = attn.causal
  attn.softmax union(%c)
}

// -----

// Tensors with an entry for each pair have rows of the part, and as many columns as a call says.
// CHECK: attn.pattern @bias(%b: memref<1x?x?x?xbf16>,
// CHECK-SAME: %whole_queries: i32 {attn.doc = "queries of the whole", attn.whole = "queries"}
// CHECK-SAME: %whole_columns: i32 {attn.doc = "entries of a row of tensors with one for each query and key", attn.whole = "columns"}
attn.pattern @bias(%b: memref<1x?x?x?xbf16>) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.bias %s, %b : memref<1x?x?x?xbf16>
  attn.softmax union(%m) of %t
}

// -----

// expected-error @+1 {{expected attn.whole of 'n' in a pattern with q_origin(given) only}}
attn.pattern @start(%n: i32 {attn.whole = "queries"}) {
  %c = attn.causal
  attn.softmax union(%c)
}

// -----

// expected-error @+1 {{expected attn.whole of 'n' to be "queries", "keys" or "columns", got "rows"}}
attn.pattern @name(%n: i32 {attn.whole = "rows"}) q_origin(given) {
  %c = attn.causal
  attn.softmax union(%c)
}

// -----

// expected-error @+1 {{expected a pattern of as many queries as keys, got draft tokens behind a cache; one GPU has them all}}
attn.pattern @tree(%a: memref<?xi64>) q_origin(end) {
  %m = attn.tree %a : memref<?xi64>
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{expected a pattern of as many queries as keys, got draft tokens behind a cache}}
attn.pattern @trees(%a: memref<?x?xi64>, %n: memref<?xi32>) q_origin(end) {
  %m = attn.tree %a : memref<?x?xi64> drafts %n : memref<?xi32>
  attn.softmax union(%m)
}
