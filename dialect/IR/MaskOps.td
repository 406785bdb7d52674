// Every op that yields a mask. One def per op with its formula and a runnable example; the verifier
// and the interface methods are in the .cpp of the same family (LeafOps, AlgebraOps, PullbackOps).
#ifndef HEDDLE_MASK_OPS_TD
#define HEDDLE_MASK_OPS_TD

include "dialect/IR/AttnBase.td"
include "dialect/IR/MaskOpInterface.td"
include "dialect/IR/OperandOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class MaskOp<string mnemonic, string maskForm, list<string> answers = [], list<Trait> traits = []>
    : AttnOp<mnemonic, [Pure, DeclareOpInterfaceMethods<MaskOpInterface, answers>] # traits> {
  let results = (outs Mask:$mask);
  let extraClassDeclaration =
      "static ::heddle::attn::MaskForm form() { return ::heddle::attn::MaskForm::" # maskForm # "; }";
}
class LeafOp<string mnemonic, list<string> answers = [], list<Trait> traits = []>
    : MaskOp<mnemonic, "Leaf", answers, traits>;
class PullbackOp<string mnemonic, list<string> answers = [], list<Trait> traits = []>
    : MaskOp<mnemonic, "Pullback", answers, [DeclareOpInterfaceMethods<PullbackOpInterface>] # traits>;
// A leaf with run-time or static sizes: `[%left, 0]`.
class SizedLeafOp<string mnemonic> : LeafOp<mnemonic, ["leafTerms"]> {
  let arguments = (ins Variadic<I32>:$dynamicSizes, DenseI64ArrayAttr:$sizes);
  let assemblyFormat = "custom<Sizes>($dynamicSizes, $sizes) attr-dict";
  let hasVerifier = 1;
}

def FullOp : LeafOp<"full", ["leafTerms"]> {
  let summary = "keeps every pair";
  let description = [{
    ```mlir
    %m = attn.full
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def CausalOp : LeafOp<"causal", ["leafTerms"]> {
  let summary = "keeps (q, k) when k <= q";
  let description = [{
    ```mlir
    %m = attn.causal
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def WindowOp : SizedLeafOp<"window"> {
  let summary = "keeps (q, k) when q - left <= k <= q + right";
  let description = [{
    Two sizes, left then right, each >= 0, static or a run-time i32.
    ```mlir
    %m = attn.window [%left, 0]
    ```
  }];
}

def RowsOp : SizedLeafOp<"rows"> {
  let summary = "keeps (q, k) when 0 <= q and (q < first or q >= extent_q - last)";
  let description = [{
    The extent is the end of the query positions in the current coordinates: the sequence, or the
    (possibly short) segment that the op is evaluated in.
    ```mlir
    %m = attn.rows [64, 0]
    ```
  }];
}

def ColsOp : SizedLeafOp<"cols"> {
  let summary = "keeps (q, k) when 0 <= k and (k < first or k >= extent_k - last)";
  let description = [{
    ```mlir
    %m = attn.cols [64, 0]
    ```
  }];
}

def BoxOp : SizedLeafOp<"box"> {
  let summary = "keeps (q, k) when first_q <= q < end_q and first_k <= k < end_k";
  let description = [{
    Four sizes, `[first_q, end_q, first_k, end_k]`, each >= 0, static or a run-time i32. An axis whose end is not
    above its first keeps nothing; where both are static, first > end is an error.
    ```mlir
    %m = attn.box [0, %rows, 128, 256]
    ```
  }];
}

def PrefixOp : SizedLeafOp<"prefix"> {
  let summary = "keeps (q, k) when k <= q or k < length (prefix-LM)";
  let description = [{
    One size >= 0: the first `length` keys of the current coordinates are kept by every query, the rest as by
    `attn.causal`, which `[0]` is.
    ```mlir
    %m = attn.prefix [%length]
    ```
  }];
}

def StrideOp : LeafOp<"stride", ["leafTerms", "residues", "inGroup"]> {
  let summary = "keeps (q, k) when the position on one axis is in a residue class";
  let description = [{
    `q` or `k` with position % rate == offset. The offset is a number or a rule: `modulo` head % rate,
    `block` head / ceil(heads / rate), `group` index of the enclosing `attn.heads` operand % rate.
    ```mlir
    %m = attn.stride k by 4 at 3
    ```
  }];
  let arguments = (ins Axis:$axis, I64Attr:$rate, OptionalAttr<I64Attr>:$at, OptionalAttr<OffsetRule>:$rule);
  let assemblyFormat = "$axis `by` $rate (`at` $at^)? (`rule` `(` $rule^ `)`)? attr-dict";
  let hasVerifier = 1;
}

def RandomOp : LeafOp<"random", ["leafTerms"]> {
  let summary = "keeps (q, k) when k is pi_t(q) for some t < min(count, extent)";
  let description = [{
    Each pi_t is a permutation of [0, extent), extent the larger of the two extents of the current coordinates, made
    from (seed, t), and from the head too with `per_head`: a Feistel network, written down bit by bit in
    [language.md](language.md#random-cells). A coordinate that is negative, or a key that does not exist, is in no
    pair; a key that two permutations give is kept once. The count is >= 0, the seed >= 0, each static or a run-time
    i32. Inside `attn.blocks` the coordinates are blocks: each query block keeps `count` random key blocks.
    ```mlir
    %r = attn.random count 26 seed %seed per_head
    %m = attn.blocks %r by [128]
    ```
  }];
  let arguments = (ins Variadic<I32>:$dynamicSizes, DenseI64ArrayAttr:$sizes, UnitAttr:$per_head);
  let assemblyFormat = "custom<CountAndSeed>($dynamicSizes, $sizes) (`per_head` $per_head^)? attr-dict";
  let hasVerifier = 1;
}

def PredicateOp : LeafOp<"predicate", [], [IsolatedFromAbove, SingleBlock]> {
  let summary = "keeps (q, k) when a region of plain arith yields true";
  let description = [{
    The region takes (batch, head, q, k) as i32, q and k in the current coordinates, and yields i1. It is
    analysed as `masked`: no tile is skipped or called full for its sake.
    ```mlir
    %m = attn.predicate {
    ^bb0(%b: i32, %h: i32, %q: i32, %k: i32):
      %c = arith.cmpi sle, %k, %q : i32
      attn.yield %c : i1
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
  let hasRegionVerifier = 1;
}

def YieldOp : AttnOp<"yield", [Pure, Terminator]> {
  let summary = "ends the region of an op";
  let arguments = (ins AnyType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

class NaryMaskOp<string mnemonic, string maskForm> : MaskOp<mnemonic, maskForm> {
  let arguments = (ins Variadic<Mask>:$masks);
  let assemblyFormat = "$masks attr-dict";
  let hasVerifier = 1;
}
def AndOp : NaryMaskOp<"and", "All"> {
  let summary = "keeps what every operand keeps";
  let description = [{
    ```mlir
    %m = attn.and %a, %b
    ```
  }];
  let hasFolder = 1;
}
def OrOp : NaryMaskOp<"or", "Any"> {
  let summary = "keeps what any operand keeps, once";
  let description = [{
    ```mlir
    %m = attn.or %a, %b
    ```
  }];
  let hasFolder = 1;
}

def NotOp : MaskOp<"not", "Inverse"> {
  let summary = "keeps what its operand does not";
  let description = [{
    ```mlir
    %m = attn.not %a
    ```
  }];
  let arguments = (ins Mask:$operand);
  let assemblyFormat = "$operand attr-dict";
  let hasFolder = 1;
}

def HeadsOp : NaryMaskOp<"heads", "ByHeads"> {
  let summary = "a different mask for each group of heads (the partition rule)";
  let description = [{
    With G operands and H heads, operand i serves floor(H / G) consecutive heads, the first H mod G operands one
    more. With H < G the last operands serve none.
    ```mlir
    %m = attn.heads %near, %far
    ```
  }];
}

def SegmentOp : PullbackOp<"segment", ["leastSize"]> {
  let summary = "evaluates a mask inside consecutive segments";
  let description = [{
    Keeps (q, k) when floor(q / w) == floor(k / w) = s and the operand keeps (q - s w, k - s w). The last segment
    may be short.
    ```mlir
    %m = attn.segment %inner by [2048]
    ```
  }];
  let arguments = (ins Mask:$operand, Variadic<I32>:$dynamicSizes, DenseI64ArrayAttr:$sizes);
  let assemblyFormat = "$operand `by` custom<Sizes>($dynamicSizes, $sizes) attr-dict";
  let hasVerifier = 1;
}

def BlocksOp : PullbackOp<"blocks", ["leastSize"]> {
  let summary = "evaluates a mask on blocks";
  let description = [{
    Keeps (q, k) when the operand keeps (floor(q / S), floor(k / S)): the operand's coordinates number blocks of S
    positions, the last of which may be short.
    ```mlir
    %m = attn.blocks %inner by [128]
    ```
  }];
  let arguments = (ins Mask:$operand, Variadic<I32>:$dynamicSizes, DenseI64ArrayAttr:$sizes);
  let assemblyFormat = "$operand `by` custom<Sizes>($dynamicSizes, $sizes) attr-dict";
  let hasVerifier = 1;
}

def TreeOp : LeafOp<"tree", ["fewQueries"],
                    [DeclareOpInterfaceMethods<OperandOpInterface, ["countsPositions", "checkTensors", "makeTensor"]>]> {
  let summary = "keeps what draft tokens see: everything before them, and of each other what a tensor says";
  let description = [{
    With n ancestors (1 to 64), the last n query positions and the last n key positions are draft tokens. Keeps (q, k) when
    k is before the draft tokens, or when q is draft token i, k is draft token j and bit j of ancestors[i] is set. So a tree
    of guesses is verified by one call: bit j says that token j is on the way from the root to token i, itself included.
    Positions of the call: not inside a pullback.

    Ancestors [batch, n], `memref<?x?xi64>` (1 in the place of the batch serves all of it), are a tree for each batch element
    b, which of a call over a cache is the sequence. Of it the last c positions are draft tokens: n, or, with `drafts`, an
    i32 for each element (1: for all), its entry b, 0 to n and no more than the element has queries or keys. Counted from
    the first draft token, query i and key j are kept when

        i < 0:   j <= i
        i >= 0:  j < 0, or bit j of ancestors[b, i] is set

    So queries before the draft tokens, those of a prompt or a single token, are causal, as all are where c is 0. Without a
    batch they see every key before the draft tokens, also those behind themselves.
    ```mlir
    %m = attn.tree %ancestors : memref<?xi64>
    %n = attn.tree %trees : memref<?x?xi64> drafts %counts : memref<?xi32>
    ```
  }];
  let arguments = (ins AnyMemRef:$ancestors, Optional<AnyMemRef>:$drafts);
  let assemblyFormat = "$ancestors `:` type($ancestors) (`drafts` $drafts^ `:` type($drafts))? attr-dict";
  let hasVerifier = 1;
}

def CsrOp : LeafOp<"csr", ["leafTerms"], [DeclareOpInterfaceMethods<OperandOpInterface, ["checkTensors", "makeTensor"]>]> {
  let summary = "keeps (q, k) when k is in the list of q: index lists in device memory, for each batch element and head";
  let description = [{
    With R offsets for each batch element b and head h (1 in the place of a dimension serves all of them), keeps (q, k) when
    0 <= q < R - 1 and k is among indices[offsets[b, h, q]] to indices[offsets[b, h, q + 1] - 1]. Offsets do not decrease
    from one to the next of a list and lie in the indices, of which those of a row ascend, each once. Inside `attn.blocks` the coordinates are
    blocks: block-sparse attention. An index that is no key (block) keeps nothing.
    ```mlir
    %l = attn.csr %offsets, %indices : memref<?x?x?xi32>, memref<?xi32>
    %m = attn.blocks %l by [128]
    ```
  }];
  let arguments = (ins AnyMemRef:$offsets, AnyMemRef:$indices);
  let assemblyFormat = "$offsets `,` $indices `:` type($offsets) `,` type($indices) attr-dict";
  let hasVerifier = 1;
}

def DocumentsOp : PullbackOp<"documents", ["documentRows", "documents"], [AttrSizedOperandSegments,
                             DeclareOpInterfaceMethods<OperandOpInterface, ["countsPositions", "checkTensors", "makeTensor"]>]> {
  let summary = "evaluates a mask inside documents that lie behind one another (a ragged batch)";
  let description = [{
    Document s holds the queries from offsets_q[s] to offsets_q[s + 1] - 1 and the keys from offsets_k[s] to
    offsets_k[s + 1] - 1, or, of these, the first used[s]. Keeps (q, k) when both are of one document and the operand
    keeps (q - offsets_q[s], k - offsets_k[s]); in a pattern with `q_origin(end)` the operand sees
    q - offsets_q[s] + (keys of s) - (queries of s). With one tensor it is that of both axes.

    Offsets are `memref<?xi32>`, one more than there are documents: they begin with 0, do not decrease and end where the
    queries (keys) of the call end, so batch 1 with packed rows is a ragged batch; documents may be empty. They count
    positions; with `q_origin(end)` those of queries count rows. Not inside another pullback.
    ```mlir
    %m = attn.documents %inner at %cu : memref<?xi32>
    %n = attn.documents %inner at %cu_q, %cu_k : memref<?xi32>, memref<?xi32> used %used : memref<?xi32>
    ```
  }];
  let arguments = (ins Mask:$operand, AnyMemRef:$offsetsQ, Optional<AnyMemRef>:$offsetsK, Optional<AnyMemRef>:$used);
  let assemblyFormat = [{
    $operand `at` $offsetsQ (`,` $offsetsK^)? `:` type($offsetsQ) (`,` type($offsetsK)^)? (`used` $used^ `:` type($used))? attr-dict
  }];
  let hasVerifier = 1;
}

def DilateOp : PullbackOp<"dilate", ["residues", "inGroup"]> {
  let summary = "evaluates a mask on one residue class of both axes, thinned";
  let description = [{
    With an offset o, keeps (q, k) when q % r == k % r == o and the operand keeps ((q - o) / r, (k - o) / r). The
    offset is `at` a number, or a rule: `modulo` head % r, `block` head / ceil(heads / r), `group` index of the
    enclosing `attn.heads` operand % r, `every`: every residue class by itself.
    ```mlir
    %m = attn.dilate %inner by 4 rule(every)
    ```
  }];
  let arguments = (ins Mask:$operand, I64Attr:$rate, OptionalAttr<I64Attr>:$at, OptionalAttr<OffsetRule>:$rule);
  let assemblyFormat = "$operand `by` $rate (`at` $at^)? (`rule` `(` $rule^ `)`)? attr-dict";
  let hasVerifier = 1;
}

#endif
