//===- ExplainKernel.h - what kernels of a pattern need ----------------------===//
// Owns the part of `heddle explain` that asks for kernels: workspace, passes and configurations.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_VIEWS_EXPLAINKERNEL_H
#define HEDDLE_COMPILER_VIEWS_EXPLAINKERNEL_H

#include "compiler/Views/ConfigChoices.h"

namespace heddle {
class PatternFile;
}

namespace heddle::views {

struct ExplainRequest;
struct Explanation;

/// Sets workspace, passes and what is said of them.
void explainKernel(const PatternFile &file, const ExplainRequest &request, Explanation &result);

/// The configurations of kernels for these sizes.
ConfigChoices configChoicesOf(const PatternFile &file, const ExplainRequest &request);

} // namespace heddle::views

#endif
