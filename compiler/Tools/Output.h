// Owns where bytes go: a file appears whole or not at all, and binary never reaches a terminal.
#pragma once

#include "compiler/Oracle/KindOracle.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/ProblemKey.h"
#include "compiler/Pattern/StageTimes.h"
#include "runtime/Core/Status.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>
#include <optional>

namespace heddle::cli {

/// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

/// "schema" of every JSON document that a verb prints or writes: docs/json.md. It grows when a key goes or changes its
/// meaning.
inline constexpr int kJsonSchema = 2;

/// With "schema" before its keys, two blanks per level and a newline. Bytes that are no UTF-8 are replaced.
std::string documentText(const Json &object);

/// The document of the command, an object. It is printed when the command ends, with the error if there is one by then.
void printJson(Json object);

/// What a command failed of, as its document says it. Of several the one with the highest exit code counts, then the
/// last.
void recordFailure(const Status &status, int exitCode, const std::vector<std::string> &hints = {});

/// Prints what printJson() took; if `isWanted`, a failure is a document too where there is none.
void flushDocument(bool isWanted);

bool stdoutIsTerminal();

/// For before the work: an output takes the place of no file that the command `uses` otherwise, read or written,
/// whatever name it has: links and other spellings are the file itself; nor of a kernel database, whether the command
/// uses it or not. invalidArgument: it would, and `option` says which output. Names of files that do not exist are fine, "" is none.
Status checkOutput(const std::string &option, const std::string &output, const std::vector<std::string> &uses);

/// The ending of a file's name, in small letters: ".svg"; "" is none.
std::string endingOf(const std::string &path);

/// For before the work: what is written is what the name says. invalidArgument: it ends in something else than one of
/// `endings`, and `otherwise` says what makes such a file. Names without an ending say nothing.
Status checkEnding(const std::string &option, const std::string &output, const std::vector<std::string> &endings,
                   const std::string &otherwise);

/// How pictures of other kinds are made.
inline constexpr const char *kFromSvg =
    "other programs make them of an .svg, such as 'rsvg-convert -o FILE.png FILE.svg'";

/// Writes to `path`, or to stdout for "-". io if it cannot be written; the file is then as it was.
Status writeArtifact(const std::string &path, const std::string &bytes);

/// {"parse": 0.4, ..., "total": 12.3} in milliseconds.
Json timesJson(const StageTimes &times);
/// A table on stderr.
void printTimes(const std::string &title, const StageTimes &times);

/// FLOPs of the whole call, all batch elements as the first, with Kind::flopsOfPair; none if the pairs are too many to
/// count without a closed form, or the kind knows none.
Result<std::optional<double>> keptFlops(const PatternFile &file, const ProblemShape &shape, int64_t flopsOfPair);

/// JSON has no infinity: "inf".
Json finiteJson(double value);

/// What its `worst` names: a row, a key, or an element of an argument.
const char *placeWord(const oracle::RoleReport &role);

/// The first role has "max_error", "allowed_error" and "worst", others "max_lse_error" and so on.
Json errorsJson(const oracle::KindReport &report);

/// What was compared, and how it went.
Json verifyJson(const oracle::KindReport &report);
void printVerify(const oracle::KindReport &report);

/// TFLOP/s; none where there are no operations to state.
std::optional<double> teraflops(const std::optional<double> &flops, double us);

/// With one digit after the point; a dash where there is none.
std::string rateText(const std::optional<double> &rate);
/// null where there is none.
Json rateJson(const std::optional<double> &rate);

} // namespace heddle::cli
