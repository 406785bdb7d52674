// Owns the spelling and help of common options, so that every verb that takes one takes it alike.
#pragma once

#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Session/KernelShape.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Tools/OptionWords.h"
#include "runtime/Store/StoreStack.h"

#include <optional>
#include <string>
#include <vector>
#include <filesystem>

namespace heddle::cli {

/// What patterns are called on the command line: a file, a name of the library, or - for standard input.
inline constexpr const char *kPatternType = "PATTERN";

/// FILE and --pattern=NAME.
struct PatternOptions {
  std::string file, name;
  void add(CLI::App &command);
  /// As PatternFile::load(); with --verbose says where it was found.
  Result<std::unique_ptr<PatternFile>> load() const;
  /// The file that load() reads, under a name that the system knows standard input by, too; "" for the library.
  std::string path() const;
};

/// What an author should know of the file, on stderr.
void printNotes(const PatternFile &file);

/// --set NAME=VALUE and --operand NAME=FILE:TENSOR, any number of times.
struct SizeOptions {
  std::vector<std::string> assignments, operands;
  void add(CLI::App &command);
  /// Usage errors: the pattern has no size or tensor of a name that is given.
  Status check(const PatternFile &file) const;
  /// The files of the tensors.
  std::vector<std::string> files() const;
};

/// --q-origin, asked of exactly the patterns whose q_origin is `given`.
struct OriginOption {
  std::optional<int64_t> position;
  void add(CLI::App &command);
  /// Usage errors: a pattern of `files` wants a position that is not given, or none takes the one that is.
  Status check(const std::vector<const PatternFile *> &files) const;
};

/// The pattern of a call, with its notes printed, if origin and sizes are for it; else the exit code, with the reason
/// printed.
struct PatternOfCall {
  std::unique_ptr<PatternFile> file = nullptr; ///< none: see exitCode
  int exitCode = 0;
};
PatternOfCall loadForCall(const PatternOptions &pattern, const OriginOption &origin, const SizeOptions &sizes);

/// --gradients-of, any number of times.
struct GradientsOption {
  std::vector<std::string> names;
  void add(CLI::App &command);
  /// The kind with these gradients; fails as gradientArguments().
  Result<Kind> addedTo(Kind kind, const PatternFile &file) const;
};

/// --kind; unknown names are usage errors that list the known ones.
/// `withPages`: decode among them.
CLI::Option *addKindOption(CLI::App &command, Kind &kind, bool withPages);

/// --precision; unknown names are usage errors that list the known ones.
CLI::Option *addPrecisionOption(CLI::App &command, Precision &precision);

/// --scale-rows, how many rows of q and k share a scale; `help`: of what.
CLI::Option *addScaleRowsOption(CLI::App &command, int64_t &rows, const std::string &help);

/// --v-key-major; `help`: what lies so.
CLI::Option *addKeyMajorOption(CLI::App &command, bool &isKeyMajor, const std::string &help);

/// --kind, --gradients-of, --head-dim, --value-dim, --dtype, --out-dtype, --precision, --scale-rows, --seqlen: what a kernel is compiled for, beside
/// the architecture.
struct ShapeOptions {
  int64_t headDim = 64, valueDim = 0, queries = 0;
  Kind kind = {};
  std::string dtype = dtypeName(kDefaultDType), outDtype, keyDtype;
  Precision precision = Precision::exact;
  int64_t scaleRows = 0;
  GradientsOption gradientsOf;
  /// `withPages`: --kind=decode, too.
  void add(CLI::App &command, bool withPages = false);
  /// --seqlen, for verbs that know no call.
  void addQueries(CLI::App &command);
  /// invalidArgument if out is neither of the type of q nor fp32.
  Status check() const;
  /// Options that passed check(). invalidArgument: the pattern has no such gradients.
  Result<KernelShape> shape(const PatternFile &file, const GpuArch &arch) const;
};

/// --skeleton, --config: how a kernel is scheduled, over the default.
struct ConfigOptions {
  std::string skeleton, fields;
  /// An unknown skeleton is a usage error that lists the known ones.
  void addSkeleton(CLI::App &command);
  CLI::Option *addFields(CLI::App &command);
  /// Both as changes to the default configuration; empty if neither was given.
  std::string changes() const;
};

/// --arch, any number of times or separated by commas; unknown names are usage errors that list the known ones.
void addArchOption(CLI::App &command, std::vector<std::string> &names);
/// The rows; "all" is every one.
std::vector<const GpuArch *> archsOf(const std::vector<std::string> &names);

/// --db=FILE.
struct DatabaseOptions {
  std::string given;
  std::vector<std::string> givenShipped;
  bool allowForeignWriters = false, forceNetwork = false;
  void add(CLI::App &command);
  /// --db-allow-foreign-writers, --db-force-network, for verbs that name databases otherwise.
  void addPermissions(CLI::App &command);
  /// --shipped-db, for verbs that look kernels up.
  void addShipped(CLI::App &command);
  /// What was given, else $HEDDLE_DB, else heddle/kernels.db in $XDG_CACHE_HOME or ~/.cache.
  std::string path() const;
  /// With the permissions that were given; long waits are told on stderr.
  StoreOptions options(StoreMode mode) const;
  /// Opens path(); for writing the default folder is made if it is missing.
  Result<Store> open(StoreMode mode) const;
  /// What was given as --shipped-db, else $HEDDLE_SHIPPED_DB.
  std::vector<std::string> shippedPaths() const;
  /// Those of shippedPaths().
  Result<std::vector<Store>> openShippedStores() const;
  /// path(), if there is such a file, over shippedPaths(); may be empty.
  Result<StoreStack> openForLookup() const;
};

/// Any of 64 bits.
CLI::Option *addSeedOption(CLI::App &command, uint64_t &seed, const std::string &help, const char *name = "--seed");

/// --json.
void addJsonOption(CLI::App &command, bool &json);

struct ProblemOptions {
  int64_t batch = 1, seqlen = 0, seqlenK = 0, heads = 1, kvHeads = 0;
  SizeOptions sizes;
  void add(CLI::App &command, bool withSeqlen);
  /// The shape of `file` at this length; checked.
  Result<ProblemShape> shape(const PatternFile &file) const;
};

/// --budget=SECONDS, "30s", "2m".
Result<double> parseSeconds(const std::string &text);

/// For verbs that start others in processes of their own.
inline std::string thisProgram() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

} // namespace heddle::cli
