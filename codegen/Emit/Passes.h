// Owns the passes that only the text emitter uses. They are not registered: no command line names
// them, and EmitPattern.cpp fixes their order.
#pragma once

#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace heddle {

// Calls of "columns_below" become `Columns::below`, those of a list's declarations the device functions that these name
// (dialect/IR/ListCalls.h), and the declarations go. Who calls Columns::below is a template over the skeleton's
// Columns.
std::unique_ptr<mlir::Pass> createCallDevicePass();

// Writes c * tanh(s / c) with the approximate instructions where that tanh is marked `afn`. CSE must have run.
std::unique_ptr<mlir::Pass> createFastTanhPass();

// Turns a module of func/arith/scf/memref functions, with divisions and minima already expanded,
// into emitc.func ops that carry the device specifiers, callees before callers. An op without a
// pattern is an error at the op. The index type survives only in constant subscripts.
std::unique_ptr<mlir::Pass> createConvertPatternToEmitCPass();

// Replaces integer constants by literals that print in place, so that the text reads `v2[0] = v7`
// and has neither a variable per constant nor a size_t.
std::unique_ptr<mlir::Pass> createInlineConstantsPass();

// Writes `#pragma unroll 1` in front of every loop; other compilers ignore it.
std::unique_ptr<mlir::Pass> createKeepLoopsRolledPass();

// Owns the C++ form of the math dialect and of arithmetic that allows approximations: calls of the functions that CUDA
// C++ has built in, or of the instruction wrappers in Skeletons/Ptx/scalar.cuh.

// f32 ops become calls of the accurate function (`expf`). An exp2 that is marked `afn` becomes the instruction ex2,
// within 2 units in the last place; a division that is marked `arcp` a product with the instruction rcp's result,
// within 1 unit. A tanh marked `afn` that bounds scores has become these before (FastTanh.cpp). Bitcasts between i32
// and f32 become the functions of that name.
void populateMathFunctionPatterns(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);

} // namespace heddle
