// The dialect, its types and its attributes. Ops are in MaskOps.td (sets of pairs), ScoreOps.td (what changes scores)
// and PatternOps.td (the function-like pattern and its end). Meaning: docs/language.md.
#ifndef HEDDLE_ATTN_BASE_TD
#define HEDDLE_ATTN_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def AttnDialect : Dialect {
  let name = "attn";
  let cppNamespace = "::heddle::attn";
  let summary = "which keys each query may see";
  let description = [{
    A pattern is an algebra of *masks*: sets of (query position, key position) pairs, one set per head.
    Row `i` of the queries has position `q_origin + i`, row `j` of the keys `k_origin + j`; every
    op is defined on positions, so one pattern serves every length, decode step and shard.

    Normal form: for a head h and a query position q the pattern gives a finite multiset K(h, q) of key
    positions; with s(q, k) = scale * <q, k>, or what a chain of score ops makes of it, lse(q) = log sum_{k in K} exp s(q, k)
    and out(q) = sum_{k in K} exp(s(q, k) - lse(q)) v(k). An empty K gives out = 0 and lse = -inf.

    *Pullback* ops (`attn.segment`, `attn.dilate`) evaluate their operand in local coordinates;
    nesting states from where positions count.
  }];
  let useDefaultTypePrinterParser = 1;
}

class AttnType<string name, string mnemonic_> : TypeDef<AttnDialect, name> { let mnemonic = mnemonic_; }
def MaskType : AttnType<"Mask", "mask"> {
  let summary = "a set of (query position, key position) pairs for each head";
}
def Mask : DialectType<AttnDialect, CPred<"::llvm::isa<::heddle::attn::MaskType>($_self)">, "mask">,
           BuildableType<"$_builder.getType<::heddle::attn::MaskType>()">;
def ScoresType : AttnType<"Scores", "scores"> {
  let summary = "a score for each pair, as a function of scale * <q, k>";
}
def Scores : DialectType<AttnDialect, CPred<"::llvm::isa<::heddle::attn::ScoresType>($_self)">, "scores">,
             BuildableType<"$_builder.getType<::heddle::attn::ScoresType>()">;

class AttnI32Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> { let cppNamespace = "::heddle::attn"; }
def OffsetRule : AttnI32Enum<"OffsetRule", "which residue class a head keeps", [
  I32EnumAttrCase<"modulo", 0>, I32EnumAttrCase<"block", 1>, I32EnumAttrCase<"group", 2>, I32EnumAttrCase<"every", 3>]>;
def Axis : AttnI32Enum<"Axis", "axis of a stride", [I32EnumAttrCase<"q", 0>, I32EnumAttrCase<"k", 1>]>;
def Combine : AttnI32Enum<"Combine", "how branches meet", [I32EnumAttrCase<"set_union", 0, "union">, I32EnumAttrCase<"lse", 1>]>;
def Gradient : AttnI32Enum<"Gradient", "gradient through branch weights", [I32EnumAttrCase<"full", 0>, I32EnumAttrCase<"detached", 1>]>;
def Origin : AttnI32Enum<"Origin", "position of query row 0", [
  I32EnumAttrCase<"start", 0>, I32EnumAttrCase<"end", 1>, I32EnumAttrCase<"given", 2>]>;

class AttnOp<string mnemonic, list<Trait> traits = []> : Op<AttnDialect, mnemonic, traits>;

#endif
