// The passes of the dialect, one .cpp each.
#ifndef HEDDLE_DIALECT_TRANSFORMS_PASSES_TD
#define HEDDLE_DIALECT_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttnNormalize : Pass<"attn-normalize", "::heddle::attn::PatternOp"> {
  let summary = "flatten nested and/or, push not toward the leaves, drop what changes nothing";
  let description = [{
    Two spellings of one pattern become the same IR, so that they share a digest and tuned kernels. Scores that a chain
    does not change (`of %s` with `%s = attn.scaled`) are those of no chain.
    ```mlir
    %a = attn.or %x, %y        // before
    %b = attn.or %a, %z
    %c = attn.not %b
    ```
    ```mlir
    %nx = attn.not %x          // after
    %ny = attn.not %y
    %nz = attn.not %z
    %c = attn.and %nx, %ny, %nz
    ```
    Needs verified IR; leaves verified IR with the same meaning for every size.
  }];
}

def AttnCanonicalSets : Pass<"attn-canonical-sets", "::heddle::attn::PatternOp"> {
  let summary = "write every mask in the one way that all texts of its set have";
  let description = [{
    Masks that the laws of sets and linear arithmetic on literals and run-time sizes make equal become the same ops: a
    union of products without a part that can go, `not` at the leaves, bands and edges as windows, rows and cols, bands
    inside the segments and dilations that they are met with, common factors in front, `attn.heads` outside. A mask of
    more than 64 leaves that differ, or 64 products, stays as it is.
    ```mlir
    %u = attn.or %window, %every_64th      // before, %window = attn.window [%left, 8]
    %m = attn.and %causal, %u
    ```
    ```mlir
    %near = attn.window [%left, 0]         // after
    %far = attn.and %causal, %every_64th
    %m = attn.or %near, %far
    ```
    Needs verified IR; leaves verified IR with the same meaning for every size.
  }];
}

def AttnSplitUnion : Pass<"attn-split-union", "::heddle::attn::PatternOp"> {
  let summary = "make branches without common pairs of a union over several key lattices";
  let description = [{
    A branch is walked at one stride of the keys. Masks of a union that lie on different key lattices become branches of
    their own, the finest lattice first, each without what those before it keep: no pair counts twice, so that `lse` of
    the branches is the union. Masks below and, segment, dilate, blocks and heads are told apart too.
    At most 16 branches: of more, the finest are walked as one.
    ```mlir
    %u = attn.or %window, %every_64th      // before
    attn.softmax union(%u)
    ```
    ```mlir
    %n = attn.not %window                  // after
    %far = attn.and %every_64th, %n
    attn.softmax lse(%window, %far)
    ```
    Needs verified IR; leaves verified IR with the same meaning for every size, but for how a backward pass would treat
    weights of branches, which `gradient(full)` says as before.
  }];
}

def AttnPart : Pass<"attn-part", "::heddle::attn::PatternOp"> {
  let summary = "let calls be parts of one whole call";
  let description = [{
    Of a pattern of as many queries as keys: positions are given per call, and two arguments behind those of the pattern
    say where the positions of the whole end. What a call of some of the queries on some of the keys keeps are then those
    pairs of the whole call, whose extents `rows`, `cols`, `random`, lists and draft tokens count.
    ```mlir
    attn.pattern @p(%g: i32) {              // before
    ```
    ```mlir
    attn.pattern @p(%g: i32, %whole_queries: i32 {attn.whole = "queries"}, %whole_keys: i32 {attn.whole = "keys"})
        q_origin(given) {                   // after
    ```
    A pattern of parts stays as it is. Tensors with an entry for each query and key (`bias`) then have rows of the call's
    queries and of others behind them, and columns as a third argument says, `%whole_columns`. Fails where offsets of documents count rows
    (`q_origin(end)`, two tensors), and for draft tokens (`tree`).
  }];
}

#endif
