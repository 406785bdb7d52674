//===- AnyKeyOrigin.h - kernels whose keys may begin anywhere ---*- C++ -*-===//
// Owns the default of calls with a k_origin that the usual default refuses, because it keeps or drops whole tiles of
// keys.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_SESSION_ANYKEYORIGIN_H
#define HEDDLE_COMPILER_SESSION_ANYKEYORIGIN_H

#include "compiler/Session/CompileSession.h"

namespace heddle {

/// Of the preferred skeleton that can: its default, or that with the nearest block_n whose tiles are not whole.
/// unsupported: none compiles.
Result<CompiledVariant> compileForAnyKeyOrigin(const PreparedPattern &prepared, const KernelRequest &request);

} // namespace heddle

#endif
