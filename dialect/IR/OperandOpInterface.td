// The one interface behind every op that reads a tensor operand of the pattern: how large the tensor is and what it
// holds, so that nobody who binds or generates tensors switches on op names.
#ifndef HEDDLE_OPERAND_OP_INTERFACE_TD
#define HEDDLE_OPERAND_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def OperandOpInterface : OpInterface<"OperandOpInterface"> {
  let cppNamespace = "::heddle::attn";
  let description = [{
    An op that reads arguments of the pattern of type memref. The verifier of attn.pattern asks every user of such an
    argument for its shape: `?` is what the op says, a number is itself.
  }];
  let methods = [
    InterfaceMethod<[{
        What operand number `index` of the op, a memref, is to it.
      }], "::heddle::attn::OperandUse", "getOperandUse", (ins "unsigned":$index)>,
    InterfaceMethod<[{
        Its tensors count positions of the call: a mask that does so stands in no pullback.
      }], "bool", "countsPositions", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
        What the integers of its tensors must be and are not: a sentence that names the tensor, the entry and both values;
        empty if all is well. Asked with all integer tensors of the op given.
      }], "std::string", "checkTensors", (ins "const ::heddle::attn::TensorCall &":$call), "", [{ return {}; }]>,
    InterfaceMethod<[{
        Integers for operand number `index` that pass the check, made for tests and measurements; they follow from the
        arguments. Empty: any will do.
      }], "std::vector<int64_t>", "makeTensor",
      (ins "unsigned":$index, "const ::heddle::attn::TensorCall &":$call, "uint64_t":$seed), "", [{ return {}; }]>
  ];
}

#endif
