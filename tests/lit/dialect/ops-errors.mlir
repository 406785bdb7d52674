// What a type cannot say is said by the verifiers, at the author's line.
// RUN: heddle-opt %s --split-input-file --verify-diagnostics

attn.pattern @bad() {
  // expected-error @+1 {{'attn.window' op expected left >= 0, got -1}}
  %m = attn.window [-1, 0]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.window' op expected right >= 0, got -2}}
  %m = attn.window [4, -2]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.window' op expected 2 sizes (left, right), got 1}}
  %m = attn.window [4]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.window' op expected left to fit in 32 bits, got 4294967296}}
  %m = attn.window [4294967296, 0]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.rows' op expected first >= 0, got -1}}
  %m = attn.rows [-1, 0]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.cols' op expected last >= 0, got -1}}
  %m = attn.cols [0, -1]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.box' op expected 4 sizes (first_q, end_q, first_k, end_k), got 2}}
  %m = attn.box [0, 4]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.box' op expected first_k >= 0, got -3}}
  %m = attn.box [0, 4, -3, 4]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.box' op expected first_q <= end_q, got 5 > 4}}
  %m = attn.box [5, 4, 0, 4]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.box' op expected first_k <= end_k, got 9 > 8}}
  %m = attn.box [5, 5, 9, 8]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.prefix' op expected length >= 0, got -1}}
  %m = attn.prefix [-1]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.prefix' op expected 1 sizes (length), got 2}}
  %m = attn.prefix [1, 2]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.stride' op expected a rate >= 1, got 0}}
  %m = attn.stride k by 0 at 0
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.stride' op expected an offset in [0, 4), got 4}}
  %m = attn.stride k by 4 at 4
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.stride' op expected either an offset (`at 0`) or a rule (`rule(modulo)`)}}
  %m = attn.stride k by 4
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.stride' op expected either an offset (`at 0`) or a rule (`rule(modulo)`)}}
  %m = attn.stride k by 4 at 1 rule(modulo)
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.stride' op expected one residue class, `rule(every)` keeps all of them}}
  %m = attn.stride k by 4 rule(every)
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %f = attn.full
  // expected-error @+1 {{'attn.dilate' op expected a rate >= 1, got 0}}
  %m = attn.dilate %f by 0 at 0
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %f = attn.full
  // expected-error @+1 {{'attn.dilate' op expected an offset in [0, 2), got -1}}
  %m = attn.dilate %f by 2 at -1
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %f = attn.full
  // expected-error @+1 {{'attn.dilate' op expected an attn.heads around rule(group)}}
  %m = attn.dilate %f by 2 rule(group)
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %f = attn.full
  // expected-error @+1 {{'attn.segment' op expected length >= 1, got 0}}
  %m = attn.segment %f by [0]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %f = attn.full
  // expected-error @+1 {{'attn.blocks' op expected size >= 1, got 0}}
  %m = attn.blocks %f by [0]
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected attn.default >= attn.min of 'size', got 0 < 1}}
attn.pattern @bad(%size: i32 {attn.default = 0 : i32}) {
  %f = attn.full
  %m = attn.blocks %f by [%size]
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.and' op expected at least one mask}}
  %m = "attn.and"() : () -> !attn.mask
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.or' op expected at least one mask}}
  %m = "attn.or"() : () -> !attn.mask
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.heads' op expected at least one mask}}
  %m = "attn.heads"() : () -> !attn.mask
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.predicate' op expected a region over (batch, head, q, k), each i32}}
  %m = attn.predicate {
  ^bb0(%q: i32, %k: i32):
    %c = arith.cmpi sle, %k, %q : i32
    attn.yield %c : i1
  }
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    // expected-error @+1 {{'attn.yield' op expected an i1, got 'i32'}}
    attn.yield %q : i32
  }
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %m = attn.predicate {
  ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
    // expected-error @+1 {{'attn.full' op expected an arith op in attn.predicate}}
    %f = attn.full
    %c = arith.cmpi sle, %k, %q : i32
    attn.yield %c : i1
  }
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected arguments to be i32, f32 or a memref, argument 0 is 'i64'}}
attn.pattern @bad(%left: i64) {
  %m = attn.full
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected attn.default >= attn.min of 'left', got 1 < 2}}
attn.pattern @bad(%left: i32 {attn.default = 1 : i32, attn.min = 2 : i32}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{'attn.pattern' op expected attn.default >= attn.min of 'left', got -1 < 0}}
attn.pattern @bad(%left: i32 {attn.default = -1 : i32}) {
  %m = attn.window [%left, 0]
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{expected q_origin(start), (end) or (given), got middle}}
attn.pattern @bad() q_origin(middle) {
  %m = attn.full
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %m = attn.full
  // expected-error @+1 {{expected the pattern to end with attn.softmax union(%mask), found 'attn.yield' last}}
  attn.yield %m : !attn.mask
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{expected the pattern to end with attn.softmax union(%mask), found 'attn.full' last}}
  %m = attn.full
}

// -----

attn.pattern @bad() {
  %m = attn.full
  // expected-error @+1 {{'arith.constant' op expected a mask op or a score op in attn.pattern}}
  %c = arith.constant 1 : i32
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.softmax' op expected at least one branch}}
  attn.softmax union()
}

// -----

attn.pattern @bad() {
  %f = attn.full
  // expected-error @+1 {{custom op 'attn.dialate' is unknown}}
  %m = attn.dialate %f by 2 at 0
  attn.softmax union(%m)
}

// -----

// Kernels count with keys and residues in 32 bits, a tile of them at once.
attn.pattern @rate_too_large() {
  %f = attn.full
  // expected-error @+1 {{'attn.dilate' op expected a rate <= 4194304, got 2147483647}}
  %m = attn.dilate %f by 2147483647 at 0
  attn.softmax union(%m)
}

// -----

attn.pattern @stride_too_large() {
  // expected-error @+1 {{'attn.stride' op expected a rate <= 4194304, got 67108864}}
  %m = attn.stride k by 67108864 at 0
  attn.softmax union(%m)
}

// -----

attn.pattern @nested_rates() {
  %k = attn.stride k by 65536 at 0
  // expected-error @+1 {{'attn.dilate' op expected nested rates whose product is at most 4194304, got 8388608}}
  %m = attn.dilate %k by 128 at 0
  attn.softmax union(%m)
}

// -----

attn.pattern @rates_multiply() {
  %f = attn.full
  %a = attn.dilate %f by 65536 at 0
  // expected-error @+1 {{'attn.blocks' op expected rates and block sizes whose product is at most 1073741824, got 4294967296}}
  %m = attn.blocks %a by [65536]
  attn.softmax union(%m)
}

// -----

// A mask is built as often as it is used: this stands for 2^13 ops.
attn.pattern @doubles() {
  %0 = attn.causal
  %1 = attn.or %0, %0
  %2 = attn.or %1, %1
  %3 = attn.or %2, %2
  %4 = attn.or %3, %3
  %5 = attn.or %4, %4
  %6 = attn.or %5, %5
  %7 = attn.or %6, %6
  %8 = attn.or %7, %7
  %9 = attn.or %8, %8
  %10 = attn.or %9, %9
  %11 = attn.or %10, %10
  // expected-error @+1 {{'attn.or' op expected at most 4096 ops, each as often as it is used in each of 1 choices of heads, got 8191}}
  %12 = attn.or %11, %11
  attn.softmax union(%12)
}

// -----

attn.pattern @too_many_choices() {
  %f = attn.full
  %a = attn.heads %f, %f, %f, %f, %f
  %b = attn.heads %f, %f, %f, %f, %f, %f, %f
  // expected-error @+1 {{'attn.heads' op expected at most 256 choices of operands of attn.heads, got 315}}
  %c = attn.heads %f, %f, %f, %f, %f, %f, %f, %f, %f
  %m = attn.or %a, %b, %c
  attn.softmax union(%m)
}

// -----

// Verifiers come before the check of dominance, and must end all the same.
attn.pattern @uses_itself() {
  // expected-error @+1 {{'attn.dilate' op expected an attn.heads around rule(group)}}
  %m = attn.dilate %m by 3 rule(group)
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.random' op expected count >= 0, got -1}}
  %m = attn.random count -1 seed 0
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.random' op expected seed >= 0, got -5}}
  %m = attn.random count 1 seed -5
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.random' op expected seed to fit in 32 bits, got 4294967296}}
  %m = attn.random count 1 seed 4294967296
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %m = attn.random count 1
  // expected-error @+1 {{custom op 'attn.random' expected 'seed'}}
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  // expected-error @+1 {{'attn.random' op expected 2 sizes (count, seed), got 1}}
  %m = "attn.random"() <{sizes = array<i64: 1>}> : () -> !attn.mask
  attn.softmax union(%m)
}

// -----

// expected-error @+1 {{expected a name for every argument, as in %left: i32, got 'i32' alone}}
attn.pattern @bad(i32 {attn.default = 1 : i32}) {
  %m = attn.full
  attn.softmax union(%m)
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  // expected-error @+1 {{operand #0 does not dominate this use}}
  %s = attn.alibi %s
  attn.softmax union(%m) of %s
}

// -----

attn.pattern @bad() {
  %m = attn.causal
  // expected-error @+1 {{operand #0 does not dominate this use}}
  %s = attn.alibi %t
  %t = attn.alibi %s
  attn.softmax union(%m) of %t
}
