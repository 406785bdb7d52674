// The one interface behind every mask op: analysis, counts, device code and the CPU path all come
// from these methods, so no pass switches on op names.
#ifndef HEDDLE_MASK_OP_INTERFACE_TD
#define HEDDLE_MASK_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def MaskOpInterface : OpInterface<"MaskOpInterface"> {
  let cppNamespace = "::heddle::attn";
  let description = [{
    A mask as a set of pairs in the local coordinates of a frame. `pieces` and `complement` describe
    the set and what it leaves out as closed forms; `buildPredicate` decides one pair. Pair counts
    follow from the pieces (dialect/Geometry/Counts.h).
  }];
  let methods = [
    InterfaceMethod<[{
        Appends pieces whose union is the mask, seen from `frame`. A mask with no closed form appends
        one piece marked `masked` that covers it.
      }], "void", "pieces", (ins "const ::heddle::attn::Frame &":$frame, "::heddle::attn::PieceList &":$out)>,
    InterfaceMethod<[{
        Appends pieces whose union is every pair of the frame that the mask does not keep.
      }], "void", "complement", (ins "const ::heddle::attn::Frame &":$frame, "::heddle::attn::PieceList &":$out)>,
    InterfaceMethod<[{
        Builds i1: the pair at the frame's local coordinates is kept.
      }], "::mlir::Value", "buildPredicate", (ins "::heddle::attn::PredicateFrame &":$frame)>,
    InterfaceMethod<[{
        How many queries a call has at most, where the mask is made for calls of few; a hint for defaults. 0: any number.
      }], "int64_t", "fewQueries", (ins), "", [{ return 0; }]>,
    InterfaceMethod<[{
        The documents in which the rows lie for the mask, if there are any, as its tensors say (dialect/Geometry/Documents.h).
      }], "std::optional<::heddle::attn::DocumentRows>", "documentRows", (ins), "", [{ return std::nullopt; }]>
  ];
}

#endif
