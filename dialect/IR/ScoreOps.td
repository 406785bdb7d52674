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

#endif
