//===- OptionWords.h - checks of option values ------------------*- C++ -*-===//
// Owns what is refused while options are parsed, so that a wrong word is a usage error before any work, and says what
// was probably meant: names of every kind, counts, numbers.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_OPTIONWORDS_H
#define HEDDLE_COMPILER_TOOLS_OPTIONWORDS_H

#include <string>
#include <vector>

namespace CLI {
class Option;
class Validator;
} // namespace CLI

namespace heddle::cli {

/// The option's values, integers, are written as parseCount() takes them (runtime/Core/CountText.h).
CLI::Option *takesCount(CLI::Option *option);
bool isCount(const CLI::Option &option);

/// The words that the option takes, where a check of it lists them; for completion.
std::vector<std::string> choicesOf(const CLI::Option &option);

/// One of `names`. Refused: "no GPU 'h20', did you mean 'h200'?; there is ..., h100 and h200" for the kind "GPU".
CLI::Validator oneOf(const std::string &kind, const std::vector<std::string> &names);

/// A GPU or architecture that has a data sheet here, as findGpuModel() takes it.
CLI::Validator gpuName();
/// "halving" or "halving:rounds=3,seed=1", as createStrategy() takes it: names and ranges of the options too.
CLI::Validator strategyWords();
/// "block_m=128,stages=2": fields that configurations have. Whether values fit is for the kernel to say.
CLI::Validator configFields();

/// A finite number between the two, both included; text that is no number in full is refused, too.
CLI::Validator realBetween(double least, double most);

} // namespace heddle::cli

#endif
