// The function-like pattern and its terminator.
#ifndef HEDDLE_PATTERN_OPS_TD
#define HEDDLE_PATTERN_OPS_TD

include "dialect/IR/AttnBase.td"
include "dialect/IR/OperandOpInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/IR/OpAsmInterface.td"

def PatternOp : AttnOp<"pattern", [FunctionOpInterface, IsolatedFromAbove,
                                   DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "a named pattern with run-time sizes as arguments";
  let description = [{
    Arguments are i32 sizes, f32 numbers and tensors in device memory, `memref`s of i32, i64, f32, bf16 or f16 whose `?` extents
    mean what the op that reads them says; argument attributes: `attn.default` (used when the caller gives none; not of
    tensors), `attn.min`, of numbers also `attn.max`, and `attn.doc`. `q_origin` says where query row 0 stands: `start` 0, `end` seqlen_k - seqlen_q (decode, chunked
    prefill), `given` per call. Calls of a pattern may be parts of a whole, such as one rank's rows and another one's keys: i32
    arguments with `attn.whole = "queries"` and `attn.whole = "keys"` say where the positions of the whole end, and extents
    (of `rows`, `cols`, `random` and lists) are those of the whole; one with `attn.whole = "columns"` says how many columns
    tensors with one for each key have (`bias`). Such a pattern has q_origin(given).
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
    /// Run-time size `index` is an f32 number; its word holds the bits.
    bool isRealParameter(unsigned index);
    /// Argument `index` is a tensor (Operands.h); its word holds its length, if it has one.
    bool isOperand(unsigned index);
    /// Name of run-time size `index` as written (`left` for %left).
    llvm::StringRef getParameterName(unsigned index);
    /// The default of run-time size `index` as a word (RealWord.h), if the pattern gives one.
    std::optional<int64_t> getParameterDefault(unsigned index);
    /// The least value that i32 size `index` may take.
    int64_t getParameterMinimum(unsigned index);
    /// The bounds of f32 number `index`; infinite where the pattern gives none.
    double getRealMinimum(unsigned index);
    double getRealMaximum(unsigned index);
    /// A word of run-time size `index` for people: "1023", "0.5".
    std::string getParameterText(unsigned index, int64_t word);
    /// The argument that says where the positions of `axis` of the whole end, of which calls are parts.
    std::optional<unsigned> getWholeArgument(::heddle::attn::WholeAxis axis);
    /// `attn.doc` of run-time size `index`, or the empty string.
    llvm::StringRef getParameterDoc(unsigned index);
  }];
}

def SoftmaxOp : AttnOp<"softmax", [Terminator, AttrSizedOperandSegments, HasParent<"::heddle::attn::PatternOp">,
                                   DeclareOpInterfaceMethods<OperandOpInterface>]> {
  let summary = "one softmax over the branches";
  let description = [{
    `union` takes each kept key once; `lse` takes the multiset sum of its branches, a key in two branches counts
    twice (the exp(lse)-weighted mixture of the branch outputs). `gradient` says what a backward pass does with the
    branch weights. Scores are scale * <q, k>, or what the chain `of` makes of it. A row whose scores are all -inf is an
    empty row.

    A `sink` is one more key of every row, with this score and without a value: weights of a row then add up to less than
    1, and an empty row gives 0 and lse = sink. It is a number, a run-time f32, or a tensor of one f32, bf16 or f16 for each
    head, in natural units, behind scale and chain; -inf in a tensor is no sink. A call that continues a carry adds none:
    what the carry holds has it already.
    ```mlir
    attn.softmax lse(%near, %far) of %capped gradient(detached)
    attn.softmax union(%near) sink 0.0
    attn.softmax union(%near) sink %logits : memref<?xf32>
    ```
  }];
  let arguments = (ins Combine:$combine, Variadic<Mask>:$branches, Optional<Scores>:$scores,
                       Optional<AnyTypeOf<[F32, AnyMemRef]>>:$dynamicSink, OptionalAttr<F32Attr>:$sink,
                       DefaultValuedAttr<Gradient, "::heddle::attn::Gradient::full">:$gradient);
  let assemblyFormat = "$combine `(` $branches `)` (`of` $scores^)? (`sink` custom<Sink>($dynamicSink, type($dynamicSink), $sink)^)? (`gradient` `(` $gradient^ `)`)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Several branches whose weights gradients do not go through.
    bool isDetached() {
      return getCombine() == Combine::lse && getBranches().size() > 1 && getGradient() == Gradient::detached;
    }
    bool hasSink() { return getDynamicSink() || getSinkAttr(); }
    /// f32: the score of the sink for the head of `frame`, whose q and k are not used.
    mlir::Value buildSink(const ::heddle::attn::ScoreFrame &frame);
    /// What happens to scores: the chain, then "sink 0.5" or "sink %logits"; empty if nothing does.
    std::string scoresInWords();
  }];
}

#endif
