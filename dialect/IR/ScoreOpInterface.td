// The one interface behind every score op: device code, the CPU path and the backward pass all come from these methods,
// so no pass switches on op names.
#ifndef HEDDLE_SCORE_OP_INTERFACE_TD
#define HEDDLE_SCORE_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def ScoreOpInterface : OpInterface<"ScoreOpInterface"> {
  let cppNamespace = "::heddle::attn";
  let description = [{
    One link of the chain that changes scores: a function of one score, given the batch element, the head and the
    positions of the pair.
  }];
  let methods = [
    InterfaceMethod<[{
        The scores that the op changes; null for the start of a chain.
      }], "::mlir::Value", "getChanged">,
    InterfaceMethod<[{
        Builds f32: what the op makes of `score`.
      }], "::mlir::Value", "buildScore", (ins "const ::heddle::attn::ScoreFrame &":$frame, "::mlir::Value":$score)>,
    InterfaceMethod<[{
        Builds f32: the derivative of what the op makes of `score` with respect to it.
      }], "::mlir::Value", "buildDerivative", (ins "const ::heddle::attn::ScoreFrame &":$frame, "::mlir::Value":$score)>,
    InterfaceMethod<[{
        Builds f32: the derivative of what the op makes of `score` with respect to `argument`, a number of the pattern or
        the element of a tensor that the pair reads; null: the op does not read it.
      }], "::mlir::Value", "buildArgumentDerivative",
      (ins "const ::heddle::attn::ScoreFrame &":$frame, "::mlir::Value":$score, "::mlir::Value":$argument),
      "", [{ return {}; }]>,
    InterfaceMethod<[{
        Builds index: which element of `argument`, a tensor that the op reads, that is.
      }], "::mlir::Value", "buildPlace",
      (ins "const ::heddle::attn::ScoreFrame &":$frame, "::mlir::Value":$argument), "", [{ return {}; }]>,
    InterfaceMethod<[{
        What of the positions of a pair decides what the op makes of its score.
      }], "::heddle::attn::PositionUse", "positionUse", (ins), "", [{ return ::heddle::attn::PositionUse::None; }]>,
    InterfaceMethod<[{
        The op in a few words, for people: "softcap by 50".
      }], "std::string", "inWords">
  ];
}

#endif
