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
    follow from the pieces (dialect/Geometry/Counts.h). `form` and what goes with it says how the mask is made of
    others (dialect/IR/MaskForm.h).
  }];
  let verify = [{ return ::heddle::attn::verifyForm($_op); }];
  let methods = [
    StaticInterfaceMethod<[{
        How the mask is made of its operands. An op that leaves it unanswered is refused when its dialect is loaded.
      }], "::heddle::attn::MaskForm", "form", (ins), "", [{ return ::heddle::attn::MaskForm::Unanswered; }]>,
    InterfaceMethod<[{
        Of a leaf: what it keeps, of sets with known laws. Left alone it is a set of its own, which only its text tells
        from others.
      }], "uint32_t", "leafTerms", (ins "::heddle::attn::MaskTerms &":$terms), "", [{ return terms.unknown(); }]>,
    InterfaceMethod<[{
        The residue class that it keeps of an axis, or of both; a rate of 1 where it keeps no class.
      }], "::heddle::attn::ResidueClass", "residues", (ins), "", [{ return {}; }]>,
    InterfaceMethod<[{
        The op as it is in operand `group` of the attn.heads around it: itself, or one that is dead until it is used.
      }], "::mlir::Operation *", "inGroup", (ins "int64_t":$group), "", [{ return $_op.getOperation(); }]>,
    InterfaceMethod<[{
        The least value of its run-time sizes.
      }], "int64_t", "leastSize", (ins), "", [{ return 0; }]>,
    InterfaceMethod<[{
        The tensors that say where the documents of its operand lie; none where it has no documents.
      }], "::heddle::attn::DocumentOperands", "documents", (ins), "", [{ return {}; }]>,
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
        How many queries a call mostly has at most, where the mask is made for calls of few; a hint for defaults. 0: any number.
      }], "int64_t", "fewQueries", (ins), "", [{ return 0; }]>,
    InterfaceMethod<[{
        The documents in which the rows lie for the mask, if there are any, as its tensors say (dialect/Geometry/Documents.h).
      }], "std::optional<::heddle::attn::DocumentRows>", "documentRows", (ins), "", [{ return std::nullopt; }]>
  ];
}

def PullbackOpInterface : OpInterface<"PullbackOpInterface"> {
  let cppNamespace = "::heddle::attn";
  let description = [{
    A mask whose first operand is evaluated in coordinates of its own.
  }];
  let methods = [
    InterfaceMethod<[{
        These coordinates, seen from those around the op.
      }], "::heddle::attn::PullbackPlace", "place", (ins)>
  ];
}

#endif
