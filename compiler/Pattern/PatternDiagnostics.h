// Owns how diagnostics of an author's text are rendered: "file:line:column: error: ...", the source line and a mark
// below it. What comes out may be printed anywhere: control characters are escaped, of a long line only what is near
// the mark is shown, and there is a bound.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

#include <string>

namespace heddle {

/// Collects what is said in a context as long as it lives.
class PatternDiagnostics {
public:
  explicit PatternDiagnostics(mlir::MLIRContext *context);
  PatternDiagnostics(const PatternDiagnostics &) = delete;

  /// Renders and forgets; without a newline at the end.
  std::string take();

  llvm::SourceMgr sources;

private:
  static void render(const llvm::SMDiagnostic &diagnostic, void *self);
  std::string text;
  llvm::raw_string_ostream stream;
  mlir::SourceMgrDiagnosticHandler handler;
};

} // namespace heddle
