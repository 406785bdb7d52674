// Every op that changes scores. One def per op with its formula and a runnable example; verifiers and the interface
// methods are in ScoreOps.cpp and ScoreMap.cpp.
#ifndef HEDDLE_SCORE_OPS_TD
#define HEDDLE_SCORE_OPS_TD

include "dialect/IR/AttnBase.td"
include "dialect/IR/ScoreOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class ScoreOp<string mnemonic, list<Trait> traits = []>
    : AttnOp<mnemonic, [Pure, DeclareOpInterfaceMethods<ScoreOpInterface, ["getChanged", "buildScore", "buildDerivative", "inWords"]>] # traits> {
  let results = (outs Scores:$result);
}

def ScaledOp : ScoreOp<"scaled"> {
  let summary = "s = scale * <q, k>, the start of every chain";
  let description = [{
    The scale is an argument of the call. A chain of this op alone changes nothing.
    ```mlir
    %s = attn.scaled
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def SoftcapOp : ScoreOp<"softcap"> {
  let summary = "s -> c tanh(s / c)";
  let description = [{
    Scores stay within -c and c. The cap is a number or a run-time f32, above 0; its unit is that of scores, natural
    logarithms of weights. The derivative is 1 - tanh(s / c)^2. Caps known to be at most 512 (a run-time one says so by
    `attn.max`) are computed as c - 2 c / (1 + exp(2 s / c)), which is off by at most 6e-7 c; larger ones by tanh.
    ```mlir
    %s = attn.scaled
    %t = attn.softcap %s by 50.0
    ```
  }];
  let arguments = (ins Scores:$changed, Optional<F32>:$dynamicCap, OptionalAttr<F32Attr>:$cap);
  let assemblyFormat = "$changed `by` custom<Real>($dynamicCap, $cap) attr-dict";
  let hasVerifier = 1;
}

def AlibiOp : ScoreOp<"alibi"> {
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

def ScoreMapOp : ScoreOp<"score_map", [IsolatedFromAbove, SingleBlock]> {
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
