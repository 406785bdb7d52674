//===- PatternFile.h - a pattern from text ----------------------*- C++ -*-===//
// Owns the way from a .mlir file to a verified, analysed pattern with bound run-time sizes. Diagnostics of the
// author's text (file:line:column, with the source line) are part of the returned Status.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_DRIVER_PATTERNFILE_H
#define HEDDLE_COMPILER_DRIVER_PATTERNFILE_H

#include "compiler/Driver/StageTimes.h"
#include "dialect/Analysis/Counts.h"
#include "runtime/Core/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heddle {

struct AttentionSchedule;

/// A parsed and verified file with the chosen pattern; owns its MLIR context. Not copyable, one thread at a time.
class PatternFile {
public:
  /// `name`: which attn.pattern of the file; empty: the only one. invalidArgument if the file cannot be read, parsed
  /// or verified, holds no pattern, or holds several and none is named.
  static Result<std::unique_ptr<PatternFile>> load(const std::string &path, const std::string &name = {});
  static Result<std::unique_ptr<PatternFile>> parse(const std::string &text, const std::string &label,
                                                    const std::string &name = {});

  /// The text of a file, or of standard input for "-". invalidArgument if it cannot be read.
  static Result<std::string> readText(const std::string &path);
  /// Calls `visit` with every pattern of a text, in order, after parsing it once; what it is given ends with the call.
  /// invalidArgument if the text is no module or holds no pattern.
  static Status forEach(const std::string &text, const std::string &label, const std::function<void(const PatternFile &)> &visit);

  attn::PatternOp pattern() const { return chosen; }
  /// The pattern as it is analysed and compiled: its union may have become branches (attn-split-union).
  attn::PatternOp lowered() const { return loweredPattern ? loweredPattern : chosen; }
  const std::string &path() const { return label; }
  const attn::PatternAnalysis &analysis() const { return analysed; }

  /// "left=1023" or "cap=30.5" assignments over the defaults, in argument order; numbers as their words (RealWord.h),
  /// tensors as 0: what gives them a length is Operands.h.
  /// invalidArgument names an unknown size (and lists the known ones), a size without a value, a value out of bounds.
  Result<std::vector<int64_t>> bindParameters(const std::vector<std::string> &assignments) const;

  /// Builds the schedule and its functions. The module lives in this file's context.
  Result<AttentionSchedule> schedule() const;

  /// One pass of the pattern, where it falls into several.
  struct Pass {
    mlir::OwningOpRef<mlir::ModuleOp> module;
    attn::PatternOp pattern;
    attn::PatternAnalysis analysis;
  };
  /// In the order in which they are computed (attn::chainedPasses); the modules live in this file's context. None:
  /// `whyNone` says why.
  std::vector<Pass> passes(std::string &whyNone) const;
  Result<AttentionSchedule> schedule(const Pass &pass) const;

  /// The verified pattern as MLIR text, ending with a newline.
  std::string text() const;

  /// Hex digest of the normalised pattern without names and locations: equal for two spellings of one pattern, also
  /// with its ops in another order. The order of arguments counts: calls give them by number.
  Result<std::string> digest() const;

  /// Diagnostics below error level that reading the text produced (warnings, remarks), rendered.
  const std::string &notes() const { return warnings; }

  /// Renders and forgets the diagnostics since the last call: the reason, after a stage on this file's context failed.
  std::string takeDiagnostics() const;

  /// parse and analyse.
  const StageTimes &times() const { return stageTimes; }

  ~PatternFile();

private:
  PatternFile();
  static Result<std::unique_ptr<PatternFile>> parseModule(const std::string &text, const std::string &label);
  void analyse(attn::PatternOp pattern);
  void analyseChosen();
  struct Source;
  std::shared_ptr<Source> source;
  mlir::OwningOpRef<mlir::ModuleOp> loweredModule; ///< only where lowering changed the pattern
  attn::PatternOp chosen, loweredPattern;
  attn::PatternAnalysis analysed;
  std::string label, warnings;
  StageTimes stageTimes;
};

} // namespace heddle

#endif
