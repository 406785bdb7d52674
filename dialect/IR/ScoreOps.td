// Every op that changes scores. One def per op with its formula and a runnable example; verifiers and the interface
// methods are in ScoreOps.cpp, TensorScores.cpp and ScoreMap.cpp.
#ifndef HEDDLE_SCORE_OPS_TD
#define HEDDLE_SCORE_OPS_TD

include "dialect/IR/AttnBase.td"
include "dialect/IR/OperandOpInterface.td"
include "dialect/IR/ScoreOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class ScoreOp<string mnemonic, list<Trait> traits = [], list<string> ofArguments = []>
    : AttnOp<mnemonic, [Pure, DeclareOpInterfaceMethods<ScoreOpInterface,
                         ["getChanged", "buildScore", "buildDerivative", "inWords"] # ofArguments>] # traits> {
  let results = (outs Scores:$result);
}

def ScaledOp : ScoreOp<"scaled", [AttrSizedOperandSegments, DeclareOpInterfaceMethods<OperandOpInterface,
                                  ["checkTensors", "makeTensor"]>]> {
  let summary = "s = scale * <q, k>, the start of every chain";
  let description = [{
    The scale is an argument of the call. A chain of this op alone changes nothing.

    Ops of the chain that read positions count them inside documents where the pattern has `attn.documents`: q and k are
    then those that its operand sees, for the document of the query (docs/language.md, "Scores"). `at`, with the tensors
    that `attn.documents` takes, says which documents those are; without it they are those of the masks.
    ```mlir
    %s = attn.scaled
    %t = attn.scaled at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>
    ```
  }];
  let arguments = (ins Variadic<AnyMemRef>:$offsets, Optional<AnyMemRef>:$used);
  let assemblyFormat = "(`at` $offsets^ `:` type($offsets))? (`used` $used^ `:` type($used))? attr-dict";
  let hasVerifier = 1;
}

def SoftcapOp : ScoreOp<"softcap", [], ["buildArgumentDerivative"]> {
  let summary = "s -> c tanh(s / c)";
  let description = [{
    Scores stay within -c and c. The cap is a number or a run-time f32, above 0; its unit is that of scores, natural
    logarithms of weights. The derivative is 1 - tanh(s / c)^2. On a GPU, caps known to be at most 512 (a run-time one says so by
    `attn.max`) are computed as c - 2 c / (1 + exp(2 s / c)), which is off by at most 6e-7 c, less than what products of
    16-bit numbers round; larger ones, and all on the CPU, by tanh, which keeps the digits of small scores.
    ```mlir
    %s = attn.scaled
    %t = attn.softcap %s by 50.0
    ```
  }];
  let arguments = (ins Scores:$changed, Optional<F32>:$dynamicCap, OptionalAttr<F32Attr>:$cap);
  let assemblyFormat = "$changed `by` custom<Real>($dynamicCap, $cap) attr-dict";
  let hasVerifier = 1;
}

def AlibiOp : ScoreOp<"alibi", [], ["positionUse"]> {
  let summary = "s -> s - m_h |q - k|, with a slope m_h for each head";
  let description = [{
    Slopes are the geometric ones of ALiBi. With N the largest power of two that is at most the number of heads, head
    h < N has m_h = 2^(-8 (h + 1) / N), and head h >= N has 2^(-4 (2 (h - N) + 1) / N): every other slope of 2 N heads.
    The derivative is 1.
    ```mlir
    %s = attn.scaled
    %t = attn.alibi %s
    ```
  }];
  let arguments = (ins Scores:$changed);
  let assemblyFormat = "$changed attr-dict";
}

def BiasOp : ScoreOp<"bias", [DeclareOpInterfaceMethods<OperandOpInterface>], ["buildArgumentDerivative", "buildPlace"]> {
  let summary = "s -> s + an element of a tensor of biases";
  let description = [{
    The tensor is an argument of the pattern, a row-major memref of rank 4 with elements f32, bf16 or f16. Its dimensions
    are batch, heads, queries and keys, each `?` or 1, which serves them all. Queries and keys are indices, not positions:
    query q has row q - q_origin of the tensor, key k column k - k_origin, so a call that sees a part of a sequence takes
    that part of the tensor. Where calls are parts of a whole (`attn.whole`) its columns are keys of that, by position: all, or
    as many as the argument with `attn.whole = "columns"` says, with the call's among them, and its address is where the
    column of position 0 would be. Rows are as many as the length of the tensor says, row 0 that of the call's first query. An element of -inf is a
    key that is not kept. The derivative is 1.
    ```mlir
    attn.pattern @bias(%bias: memref<1x?x?x?xbf16>) {
      %m = attn.causal
      %s = attn.scaled
      %t = attn.bias %s, %bias : memref<1x?x?x?xbf16>
      attn.softmax union(%m) of %t
    }
    ```
  }];
  let arguments = (ins Scores:$changed, AnyMemRef:$tensor);
  let assemblyFormat = "$changed `,` $tensor attr-dict `:` type($tensor)";
  let hasVerifier = 1;
}

def RelativeOp : ScoreOp<"relative", [DeclareOpInterfaceMethods<OperandOpInterface>],
                         ["buildArgumentDerivative", "buildPlace", "positionUse"]> {
  let summary = "s -> s + the entry of a table for the head and the distance of query and key";
  let description = [{
    The table is an argument of the pattern, a row-major memref of rank 2 with elements f32, bf16 or f16: heads, `?` or 1
    for one row that serves them all, and entries, `?` (the length of the tensor) or a number. With N entries and the
    offset o, static or a run-time i32 >= 0, adds table[head, min(max(q - k + o, 0), N - 1)], where q and k are positions:
    entry o is that of the distance 0, and the ends serve everything further away. The derivative is 1.
    ```mlir
    attn.pattern @relative(%table: memref<?x255xf32>) {
      %m = attn.full
      %s = attn.scaled
      %t = attn.relative %s, %table at [127] : memref<?x255xf32>
      attn.softmax union(%m) of %t
    }
    ```
  }];
  let arguments = (ins Scores:$changed, AnyMemRef:$table, Variadic<I32>:$dynamicSizes, DenseI64ArrayAttr:$sizes);
  let assemblyFormat = "$changed `,` $table `at` custom<Sizes>($dynamicSizes, $sizes) attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def ScoreMapOp : ScoreOp<"score_map", [IsolatedFromAbove, SingleBlock], ["buildArgumentDerivative", "positionUse"]> {
  let summary = "s -> what a region of plain arith and math makes of it";
  let description = [{
    The region takes (score, batch, head, q, k), an f32 and four i32, then the run-time arguments of the pattern that
    `with` lists, and yields f32. It may have arith ops on i32 and i1, and of arith and math ops on f32 those with a known
    derivative: constant, addf, subf, mulf, divf, negf, maximumf, minimumf, cmpf, select, sitofp, uitofp, absf, ceil, cos,
    erf, exp, exp2, expm1, floor, fma, log, log1p, log2, powf, rsqrt, sin, sqrt, tanh. The derivative is that of the region,
    op by op; of maximumf, minimumf, select and absf that of the side that is taken, of ceil and floor 0. A score of -inf
    is a key that is not kept.
    ```mlir
    %s = attn.scaled
    %t = attn.score_map %s with %heat : f32 {
    ^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32, %temperature: f32):
      %y = arith.divf %x, %temperature : f32
      attn.yield %y : f32
    }
    ```
  }];
  let arguments = (ins Scores:$changed, Variadic<AnyTypeOf<[I32, F32]>>:$numbers);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$changed (`with` $numbers^ `:` type($numbers))? $body attr-dict";
  let hasRegionVerifier = 1;
}

#endif
