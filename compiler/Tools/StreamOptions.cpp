#include "compiler/Tools/RunStream.h"
#include "compiler/Tools/Verb.h"
#include "runtime/Core/Positions.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

void StreamOptions::add(CLI::App &command) {
  CLI::Range counts(int64_t(1), int64_t(1) << 20), lengths(int64_t(1), kFarthestPosition);
  command.add_flag(
      "--stream", isOn,
      "Forward, piece by piece, for sequences that fit into no memory: rows of --inputs are read when they "
      "are needed, or made if --seqlen is given, and results written when a piece is done");
  addCount(command, "--piece-rows", pieceRows, "ROWS",
           "Streamed: rows of a piece [as many as half of the free memory holds, at most 16M]")
      ->check(lengths);
  addCount(command, "--first-row", firstRow, "ROW", "Streamed: compute rows from here on; those before are keys alone")
      ->check(CLI::Range(int64_t(0), kFarthestPosition));
  addCount(command, "--seqlen", seqlen, "N",
           "Streamed: instead of --inputs, the tensors of make-inputs, made on the fly")
      ->check(lengths);
  sizes.headDim = 64;
  addCount(command, "--batch", sizes.batch, "B", "Of --seqlen: batch elements")->check(counts)->capture_default_str();
  addCount(command, "--heads", sizes.heads, "H", "Of --seqlen: query heads")->check(counts)->capture_default_str();
  addCount(command, "--kv-heads", kvHeads, "H", "Of --seqlen: heads of k and v [as --heads]")->check(counts);
  addCount(command, "--head-dim", sizes.headDim, "D", "Of --seqlen: channels of q and k")
      ->check(counts)
      ->capture_default_str();
  addCount(command, "--value-dim", valueDim, "D", "Of --seqlen: channels of v [as --head-dim]")->check(counts);
  addValue(command, "--dtype", dtype, "TYPE", "Of --seqlen: element type")
      ->check(CLI::IsMember(elementNames(&ElementTraits::isOfCalls)))
      ->capture_default_str();
  addSeedOption(command, seed, "Of --seqlen: seed of the random numbers")->capture_default_str();
}

Status StreamOptions::check(const CLI::App &command, const std::string &inputs) const {
  for (const char *option : {"--piece-rows", "--first-row", "--seqlen"})
    if (!isOn && command.count(option))
      return Status::invalidArgument(std::string(option) + " is for --stream");
  for (const char *option : {"--batch", "--heads", "--kv-heads", "--head-dim", "--value-dim", "--dtype", "--seed"})
    if (!seqlen && command.count(option))
      return Status::invalidArgument(std::string(option) + " is of inputs that are made: give --stream and --seqlen, "
                                                           "or leave it to the tensors of --inputs");
  if (seqlen && !inputs.empty())
    return Status::invalidArgument("--seqlen makes inputs, --inputs reads them: give one of them");
  if (!seqlen && inputs.empty())
    return Status::invalidArgument(isOn ? "--inputs is required, or --seqlen" : "--inputs is required");
  return {};
}

} // namespace heddle::cli
