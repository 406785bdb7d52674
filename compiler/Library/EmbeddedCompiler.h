// Owns the databases of a program and what it compiles and searches: each kernel is made once, filed, and found from
// then on.
#pragma once

#include "compiler/Session/CompileSession.h"
#include "compiler/Library/Background.h"
#include "compiler/Library/CompiledPattern.h"
#include "compiler/Library/MadeKernels.h"
#include "runtime/Api/KernelFinder.h"

#include <optional>

namespace heddle {

struct CompilerOptions {
  std::string database;             ///< empty: the user's own
  std::vector<std::string> shipped; ///< only read
  bool isReadOnly = false;
  bool allowForeignWriters = false, forceNetwork = false;
  std::string program; ///< heddle, in whose processes searches run kernels; empty: this one
  int workers = 0;     ///< 0: one less than there are processors
};

/// What a program asks for: a kernel of a pattern, for a GPU and a kind of call.
struct KernelQuestion {
  std::shared_ptr<CompiledPattern> pattern;
  Device device;
  KernelShape kernel;
  ProblemShape problem;
  bool hasSizes = false;         ///< of the problem: all that a bucket needs
  bool isBatchInvariant = false; ///< bits of a row, and of gradients of a key, do not depend on others
};

struct SearchOptions {
  double budgetSeconds = 20;
  int64_t verifiedRows = 32;
  std::string strategy; ///< empty: the default
};

/// Thread safe.
class EmbeddedCompiler {
public:
  static Result<std::unique_ptr<EmbeddedCompiler>> open(const CompilerOptions &options);

  bool isReadOnly() const { return options.isReadOnly; }

  /// invalidArgument: the pattern has no such gradients.
  static Status checkGradients(const KernelQuestion &question);

  /// The kernel that the databases have. notFound if nothing fits.
  Result<FoundKernel> asStored(const KernelQuestion &question);
  /// Stored, else the default for this GPU, compiled now.
  Result<FoundKernel> best(const KernelQuestion &question);
  /// Stored, else one that compiles sooner, and the default for this GPU in the background.
  Result<FoundKernel> soon(const KernelQuestion &question);

  using Done = std::function<void(Result<FoundKernel>)>;
  std::shared_ptr<Task> compileLater(KernelQuestion question, Done done);
  std::shared_ptr<Task> searchLater(KernelQuestion question, SearchOptions options, Done done);

private:
  EmbeddedCompiler() = default;
  enum class Made { preferred, provisional, anyKeyOrigin, invariant };

  /// Batch-invariant or not.
  Result<FoundKernel> stored(const KernelQuestion &question);
  void tryToCompileLater(const KernelQuestion &question);
  Result<FoundKernel> soonest(const KernelQuestion &question);
  /// What was found, or one made for any k_origin where it refuses that of the question, or one that is batch-invariant
  /// where the question wants it and this is not. Only in memory: it is no default.
  Result<FoundKernel> serving(const KernelQuestion &question, Result<FoundKernel> found);
  Result<FoundKernel> made(const KernelQuestion &question, Made which, const std::string &changes = {});
  /// `changes`: of the default of a kernel, for one that is made of another.
  Result<KernelRecord> make(const KernelQuestion &question, Made which, const std::string &changes);
  /// Those of the own database: defaults for other numbers of queries are often of the same code.
  KnownKernels knownKernels() const;
  /// A record that could not be filed says so.
  void file(KernelRecord &record, const PreparedPattern &prepared, const KernelQuestion &question, Made which);
  Result<FoundKernel> search(const KernelQuestion &question, const SearchOptions &options, const Task &task);

  CompilerOptions options;
  std::optional<Store> own; ///< for writing
  KernelFinder finder;

  /// By question, also what is filed: for threads that looked into the database before it was.
  MadeKernels kernels;
  std::mutex filing;                 ///< held while a default is filed; guards filed
  std::map<std::string, bool> filed; ///< families and architectures whose preferred default this process has filed

  Background compilations, searches; ///< last: they use all of the above
};

} // namespace heddle
