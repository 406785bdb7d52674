// The function-like pattern and its terminator.
#ifndef HEDDLE_PATTERN_OPS_TD
#define HEDDLE_PATTERN_OPS_TD

include "dialect/IR/AttnBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def PatternOp : AttnOp<"pattern", [FunctionOpInterface, IsolatedFromAbove,
                                   DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a named pattern with run-time sizes as arguments";
  let description = [{
    Arguments are i32 sizes; argument attributes: `attn.default` (used when the caller gives none), `attn.min`,
    `attn.doc`. `q_origin` says where query row 0 stands: `start` 0, `end` seqlen_k - seqlen_q (decode, chunked
    prefill), `given` per call.
    ```mlir
    attn.pattern @sliding_window(%left: i32 {attn.default = 1023 : i32}) {
      %w = attn.window [%left, 0]
      attn.softmax union(%w)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       DefaultValuedAttr<Origin, "::heddle::attn::Origin::start">:$q_origin,
                       OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    llvm::ArrayRef<mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    llvm::ArrayRef<mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    mlir::Region *getCallableRegion() { return &getBody(); }
    /// The terminator.
    ::heddle::attn::SoftmaxOp getSoftmax();
    /// Name of run-time size `index` as written (`left` for %left).
    llvm::StringRef getParameterName(unsigned index);
    /// The default of run-time size `index`, if the pattern gives one.
    std::optional<int64_t> getParameterDefault(unsigned index);
    /// The least value that run-time size `index` may take.
    int64_t getParameterMinimum(unsigned index);
    /// `attn.doc` of run-time size `index`, or the empty string.
    llvm::StringRef getParameterDoc(unsigned index);
  }];
}

def SoftmaxOp : AttnOp<"softmax", [Terminator, HasParent<"::heddle::attn::PatternOp">]> {
  let summary = "one softmax over the branches";
  let description = [{
    `union` takes each kept key once; `lse` takes the multiset sum of its branches, a key in two branches counts
    twice (the exp(lse)-weighted mixture of the branch outputs). `gradient` says what a backward pass does with the
    branch weights.
    ```mlir
    attn.softmax lse(%near, %far) gradient(detached)
    ```
  }];
  let arguments = (ins Combine:$combine, Variadic<Mask>:$branches,
                       DefaultValuedAttr<Gradient, "::heddle::attn::Gradient::full">:$gradient);
  let assemblyFormat = "$combine `(` $branches `)` (`gradient` `(` $gradient^ `)`)? attr-dict";
  let hasVerifier = 1;
}

#endif
