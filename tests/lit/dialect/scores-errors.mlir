// Every mistake in a chain of scores has one message at the op that it is in.
// RUN: heddle-opt %s --split-input-file --verify-diagnostics

attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.softcap' op expected cap > 0, got 0}}
  %t = attn.softcap %s by 0.0
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.softcap' op expected cap > 0, got -2}}
  %t = attn.softcap %s by -2.0
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.softcap' op expected a finite cap, got}}
  %t = attn.softcap %s by 1.0e60
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%cap: f32) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{'attn.softcap' op expected a run-time cap with attn.min > 0}}
  %t = attn.softcap %s by %cap
  attn.softmax union(%m) of %t
}

// -----

// expected-note @+1 {{prior use here}}
attn.pattern @bad(%cap: i32) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{expects different type than prior uses: 'f32' vs 'i32'}}
  %t = attn.softcap %s by %cap
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad() {
  // expected-note @+1 {{prior use here}}
  %m = attn.causal
  // expected-error @+1 {{expects different type than prior uses: '!attn.scores' vs '!attn.mask'}}
  %t = attn.alibi %m
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad() {
  // expected-note @+1 {{prior use here}}
  %m = attn.causal
  // expected-error @+1 {{expects different type than prior uses: '!attn.scores' vs '!attn.mask'}}
  attn.softmax union(%m) of %m
}

// -----

// expected-error @+1 {{expected a finite attn.default of 'cap' between attn.min and attn.max, got 9}}
attn.pattern @bad(%cap: f32 {attn.default = 9.0 : f32, attn.max = 8.0 : f32}) {
  %m = attn.causal
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{expected attn.default of 'cap' to be 'f32', got 9 : i32}}
attn.pattern @bad(%cap: f32 {attn.default = 9 : i32}) {
  %m = attn.causal
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{expected arguments to be i32, f32 or a memref, argument 0 is 'f64'}}
attn.pattern @bad(%cap: f64) {
  %m = attn.causal
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{expected a region over (score, batch, head, q, k): f32 and four i32}}
  %t = attn.score_map %s {
  ^bb0(%x: f32, %q: i32, %k: i32):
    attn.yield %x : f32
  }
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.score_map %s {
  ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32):
    // expected-error @+1 {{'attn.yield' op expected an f32, got 'i32'}}
    attn.yield %q : i32
  }
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  %s = attn.scaled
  %t = attn.score_map %s {
  ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32):
    // expected-error @+1 {{'math.atan' op expected an op on f32 with a known derivative, or an arith op on i32 and i1}}
    %y = math.atan %x : f32
    attn.yield %y : f32
  }
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%heat: f32) {
  %m = attn.causal
  %s = attn.scaled
  // expected-error @+1 {{expected the region to take what `with` lists behind (score, batch, head, q, k)}}
  %t = attn.score_map %s with %heat : f32 {
  ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32, %n: i32):
    attn.yield %x : f32
  }
  attn.softmax union(%m) of %t
}

// -----

attn.pattern @bad(%a: memref<?xi32>, %b: memref<?xi32>) {
  %c = attn.causal
  // expected-error @+1 {{'attn.documents' op expected all documents to be of the same tensors, as scores read positions inside them; `attn.scaled at` says which scores count in}}
  %m = attn.documents %c at %a, %b : memref<?xi32>, memref<?xi32>
  // expected-note @+1 {{others are here}}
  %n = attn.documents %c at %b, %a : memref<?xi32>, memref<?xi32>
  %s = attn.scaled
  %t = attn.alibi %s
  attn.softmax lse(%m, %n) of %t
}

// -----

attn.pattern @bad(%a: memref<?xi32>, %n: memref<?xi32>) {
  %m = attn.causal
  // expected-error @+1 {{'attn.scaled' op expected offsets of the keys beside `used`}}
  %s = attn.scaled at %a : memref<?xi32> used %n : memref<?xi32>
  attn.softmax union(%m) of %s
}

// -----

attn.pattern @bad(%n: memref<?xi32>) {
  %m = attn.causal
  // expected-error @+1 {{'attn.scaled' op expected offsets, `at`, beside `used`}}
  %s = attn.scaled used %n : memref<?xi32>
  attn.softmax union(%m) of %s
}

// -----

attn.pattern @bad(%a: memref<?xi32>) {
  %m = attn.causal
  // expected-error @+1 {{'attn.scaled' op expected offsets of queries and of keys, or of both, got 3 tensors}}
  %s = attn.scaled at %a, %a, %a : memref<?xi32>, memref<?xi32>, memref<?xi32>
  attn.softmax union(%m) of %s
}
