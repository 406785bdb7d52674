// Every mistake in a tensor argument, or in an op that reads one, has one message at the op that it is in.
// RUN: heddle-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{'attn.pattern' op expected tensor 'x' to be a row-major memref of bf16, f16, f32, f8E4M3FN, i32 or i64 with at least one dimension, got 'memref<?xf64>'}}
attn.pattern @bad(%x: memref<?xf64>) {
  %m = attn.causal
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected tensor 'x' to be a row-major memref of bf16, f16, f32, f8E4M3FN, i32 or i64 with at least one dimension, got 'memref<f32>'}}
attn.pattern @bad(%x: memref<f32>) {
  %m = attn.causal
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected no attn.default of tensor 'x', which takes attn.doc}}
attn.pattern @bad(%x: memref<?xf32> {attn.default = 1.0 : f32}) {
  %m = attn.causal
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?x?x?xf32>) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.bias' op expected a row-major memref of rank 4 of bf16, f16, f32 or f8E4M3FN, got 'memref<?x?x?xf32>'}}
  %t = attn.bias %s, %x : memref<?x?x?xf32>
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%x: memref<?x?x?x?xi32>) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.bias' op expected a row-major memref of rank 4 of bf16, f16, f32 or f8E4M3FN, got 'memref<?x?x?x?xi32>'}}
  %t = attn.bias %s, %x : memref<?x?x?x?xi32>
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%x: memref<?x8x?x?xf32>) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.bias' op expected dimension 1 to be ? or 1, got 8}}
  %t = attn.bias %s, %x : memref<?x8x?x?xf32>
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%x: memref<4x?xf32>) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.relative' op expected dimension 0, heads, to be ? or 1, got 4}}
  %t = attn.relative %s, %x at [0] : memref<4x?xf32>
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%x: memref<?x0xf32>) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.relative' op expected a table with at least one entry}}
  %t = attn.relative %s, %x at [0] : memref<?x0xf32>
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%x: memref<?x9xf32>) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.relative' op expected offset >= 0, got -3}}
  %t = attn.relative %s, %x at [-3] : memref<?x9xf32>
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%x: memref<?x9xf32>) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.relative' op expected 1 sizes (offset), got 2}}
  %t = attn.relative %s, %x at [3, 4] : memref<?x9xf32>
  attn.softmax union(%m) of %t
}

// -----

// expected-error @+1 {{'attn.pattern' op expected extents of tensor 'x' to fit in 32 bits, got 2147483648}}
attn.pattern @bad(%x: memref<?x2147483648xf32>) {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.relative %s, %x at [3] : memref<?x2147483648xf32>
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%x: memref<?x?xf32>) {
  %m = attn.causal
  // expected-error @+1 {{'attn.softmax' op expected the sink to be a number or a memref<?x> of bf16, f16, f32 or f8E4M3FN with one for each head, got 'memref<?x?xf32>'}}
  attn.softmax union(%m) sink %x : memref<?x?xf32>
}

// -----

attn.pattern @bad(%x: memref<?xi32>) {
  %m = attn.causal
  // expected-error @+1 {{with one for each head, got 'memref<?xi32>'}}
  attn.softmax union(%m) sink %x : memref<?xi32>
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  // expected-error @+1 {{'attn.softmax' op expected a finite sink, got INF}}
  attn.softmax union(%m) sink 1.0e39
}

// -----

attn.pattern @bad(%x: memref<?xf32>) {
  %c = attn.causal
  // expected-error @+1 {{'attn.documents' op expected row-major memrefs of rank 1 of i32, got 'memref<?xf32>'}}
  %m = attn.documents %c at %x : memref<?xf32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<1xi32>) {
  %c = attn.causal
  // expected-error @+1 {{'attn.documents' op expected at least 2 offsets, got 'memref<1xi32>'}}
  %m = attn.documents %c at %x : memref<1xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<5xi32>, %y: memref<6xi32>) {
  %c = attn.causal
  // expected-error @+1 {{'attn.documents' op expected tensors of as many documents, got 'memref<5xi32>', 'memref<6xi32>'}}
  %m = attn.documents %c at %x, %y : memref<5xi32>, memref<6xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?xi32>) {
  %c = attn.causal
  // expected-error @+1 {{'attn.documents' op expected offsets of the keys beside `used`}}
  %m = attn.documents %c at %x : memref<?xi32> used %x : memref<?xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?xi32>) {
  %c = attn.causal
  // expected-error @+1 {{'attn.documents' op expected to be outside of pullbacks, its tensor counts positions of the call}}
  %d = attn.documents %c at %x : memref<?xi32>
  %n = attn.not %d
  // expected-note @+1 {{'attn.segment' is one}}
  %m = attn.segment %n by [8]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?xi32>) {
  // expected-error @+1 {{'attn.tree' op expected a row-major memref of rank 1 of i64, got 'memref<?xi32>'}}
  %m = attn.tree %x : memref<?xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<65xi64>) {
  // expected-error @+1 {{'attn.tree' op expected 1 to 64 draft tokens, got 'memref<65xi64>'}}
  %m = attn.tree %x : memref<65xi64>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?x65xi64>) {
  // expected-error @+1 {{'attn.tree' op expected 1 to 64 draft tokens, got 'memref<?x65xi64>'}}
  %m = attn.tree %x : memref<?x65xi64>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<3x?xi64>) {
  // expected-error @+1 {{'attn.tree' op expected dimension 0 of the ancestors to be ? or 1, got 3}}
  %m = attn.tree %x : memref<3x?xi64>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?x?x?xi64>) {
  // expected-error @+1 {{'attn.tree' op expected a row-major memref of rank 2 of i64, got 'memref<?x?x?xi64>'}}
  %m = attn.tree %x : memref<?x?x?xi64>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?xi64>, %n: memref<?xi32>) {
  // expected-error @+1 {{'attn.tree' op expected ancestors of each batch element, memref<?x?xi64>, beside `drafts`, got 'memref<?xi64>'}}
  %m = attn.tree %x : memref<?xi64> drafts %n : memref<?xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?x?xi64>, %n: memref<?xi64>) {
  // expected-error @+1 {{'attn.tree' op expected a row-major memref of rank 1 of i32, got 'memref<?xi64>'}}
  %m = attn.tree %x : memref<?x?xi64> drafts %n : memref<?xi64>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?x?xi64>, %n: memref<4xi32>) {
  // expected-error @+1 {{'attn.tree' op expected dimension 0 of the numbers of drafts to be ? or 1, got 4}}
  %m = attn.tree %x : memref<?x?xi64> drafts %n : memref<4xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?xi64>, %cu: memref<?xi32>) {
  // expected-error @+1 {{'attn.tree' op expected to be outside of pullbacks, its tensor counts positions of the call}}
  %t = attn.tree %x : memref<?xi64>
  // expected-note @+1 {{'attn.documents' is one}}
  %m = attn.documents %t at %cu : memref<?xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?xi64>) {
  %m = attn.causal
  // expected-error @+1 {{'attn.softmax' op}}
  attn.softmax union(%m) sink %x : memref<?xi64>
}

// -----

attn.pattern @bad(%x: memref<?xi32>, %y: memref<?xi32>) {
  // expected-error @+1 {{'attn.csr' op expected a row-major memref of rank 3 of i32, got 'memref<?xi32>'}}
  %m = attn.csr %x, %y : memref<?xi32>, memref<?xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?x4x?xi32>, %y: memref<?xi32>) {
  // expected-error @+1 {{'attn.csr' op expected dimension 1 of the offsets to be ? or 1, got 4}}
  %m = attn.csr %x, %y : memref<?x4x?xi32>, memref<?xi32>
  attn.softmax union(%m)
}

// -----

attn.pattern @bad(%x: memref<?x?x1xi32>, %y: memref<?xi32>) {
  // expected-error @+1 {{'attn.csr' op expected at least 2 offsets in a list, got 'memref<?x?x1xi32>'}}
  %m = attn.csr %x, %y : memref<?x?x1xi32>, memref<?xi32>
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected no attn.max of i32 'left', which takes attn.default, attn.min, attn.doc}}
attn.pattern @bad(%left: i32 {attn.max = 7 : i32}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected no attn.defalt of i32 'left', which takes attn.default, attn.min, attn.doc}}
attn.pattern @bad(%left: i32 {attn.defalt = 7 : i32}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected no attn.maximum of f32 'cap', which takes attn.default, attn.min, attn.max, attn.doc}}
attn.pattern @bad(%cap: f32 {attn.min = 1.0 : f32, attn.maximum = 7.0 : f32}) {
  %m = attn.causal
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected attn.doc of 'left' to be a string, got 7 : i64}}
attn.pattern @bad(%left: i32 {attn.doc = 7}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}
