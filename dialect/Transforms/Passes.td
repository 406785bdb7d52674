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

#endif
