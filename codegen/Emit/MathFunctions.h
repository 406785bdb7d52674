//===- MathFunctions.h - math ops as calls -----------------------------------===//
// Owns the C++ form of the math dialect and of arithmetic that allows approximations: calls of the functions that CUDA
// C++ has built in, or of the instruction wrappers in Skeletons/Ptx/scalar.cuh.
#pragma once

#include "mlir/Transforms/DialectConversion.h"

namespace heddle {

// f32 ops become calls of the accurate function (`expf`). An exp2 that is marked `afn` becomes the instruction ex2,
// within 2 units in the last place; a division that is marked `arcp` a product with the instruction rcp's result,
// within 1 unit. A tanh marked `afn` that bounds scores has become these before (FastTanh.cpp). Bitcasts between i32
// and f32 become the functions of that name.
void populateMathFunctionPatterns(mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns);

} // namespace heddle
