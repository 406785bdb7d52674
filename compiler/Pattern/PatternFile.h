// Owns the way from a .mlir file to a verified, analysed pattern with bound run-time sizes. Diagnostics of the
// author's text (file:line:column, with the source line) are part of the returned Status.
#pragma once

#include "compiler/Pattern/StageTimes.h"
#include "dialect/Analysis/PatternAnalysis.h"
#include "dialect/Geometry/Counts.h"
#include "runtime/Core/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace heddle {

struct AttentionSchedule;
struct PatternSource;

/// A parsed and verified file with the chosen pattern; owns its MLIR context. Not copyable, one thread at a time.
class PatternFile {
public:
  /// `path`: a file or a name of the library (PatternSource.h). `name`: which attn.pattern of the file; empty: the only
  /// one. notFound: there is nothing of that path or name. invalidArgument if the file cannot be read, parsed or
  /// verified, holds no pattern, or holds several and none is named.
  static Result<std::unique_ptr<PatternFile>> load(const std::string &path, const std::string &name = {});
  static Result<std::unique_ptr<PatternFile>> parse(const std::string &text, const std::string &label,
                                                    const std::string &name = {});

  /// The text of a file, or of standard input for "-". invalidArgument if it cannot be read.
  static Result<std::string> readText(const std::string &path);
  static Result<std::string> readText(const PatternSource &source);
  /// Calls `visit` with every pattern of a text, in order, after parsing it once; what it is given ends with the call.
  /// invalidArgument if the text is no module or holds no pattern.
  static Status forEach(const std::string &text, const std::string &label,
                        const std::function<void(const PatternFile &)> &visit);

  attn::PatternOp pattern() const { return chosen; }
  /// The pattern in the one way of writing that all texts of it have (attn-canonical-sets).
  attn::PatternOp canonical() const { return canonicalPattern; }
  /// The pattern as it is analysed and compiled: the union of the canonical one may have become branches
  /// (attn-split-union).
  attn::PatternOp lowered() const { return loweredPattern ? loweredPattern : canonicalPattern; }
  const std::string &path() const { return label; }
  const attn::PatternAnalysis &analysis() const { return analysed; }

  /// invalidArgument: the pattern has no run-time size of a name that is given; the message lists those it has.
  Status checkSizeNames(const std::vector<std::string> &assignments) const;

  /// "left=1023", "left=8k" or "cap=30.5" assignments over the defaults, in argument order; numbers as their words
  /// (RealWord.h), tensors as 0: what gives them a length is Operands.h. invalidArgument names an unknown size (and
  /// lists the known ones), a size without a value, a value out of bounds.
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
  /// Text of the pattern whose calls are parts of one (attn-part). unsupported: why they cannot be.
  Result<std::string> partText() const;

  /// Hex digest of the canonical pattern without names and locations: equal for two spellings of one pattern, also
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
  mlir::OwningOpRef<mlir::ModuleOp> canonicalModule, loweredModule; ///< lowered: only where a union became branches
  attn::PatternOp chosen, canonicalPattern, loweredPattern;
  attn::PatternAnalysis analysed;
  std::string label, warnings;
  StageTimes stageTimes;
};

struct PatternRates;

/// What file.passes gives.
struct PassesOfFile {
  explicit PassesOfFile(const PatternFile &file) : passes(file.passes(whyNone)) {}
  std::string whyNone;
  std::vector<PatternFile::Pass> passes;
};

PatternRates ratesOf(const PatternFile &file, const PassesOfFile &passes);

} // namespace heddle
