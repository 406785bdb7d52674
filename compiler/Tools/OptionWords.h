// Owns how options with a value are declared, and what is refused while options are parsed, so that a wrong word is a usage error before any work, and says what
// was probably meant: names of every kind, counts, numbers.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

namespace heddle::cli {

/// An option with a value, which help calls by `type`.
template <class T>
CLI::Option *addValue(CLI::App &command, const char *names, T &value, const char *type, const std::string &help) {
  return command.add_option(names, value, help)->type_name(type);
}
/// One that may be repeated, each time with one value.
template <class T>
CLI::Option *addValues(CLI::App &command, const char *names, T &values, const char *type, const std::string &help) {
  return addValue(command, names, values, type, help)->allow_extra_args(false);
}
/// The option's values, integers, are written as parseCount() takes them (runtime/Core/CountText.h).
CLI::Option *takesCount(CLI::Option *option);
bool isCount(const CLI::Option &option);
template <class T>
CLI::Option *addCount(CLI::App &command, const char *names, T &value, const char *type, const std::string &help) {
  return takesCount(addValue(command, names, value, type, help));
}

/// The words that the option takes, where a check of it lists them; for completion.
std::vector<std::string> choicesOf(const CLI::Option &option);

/// One of `names`. Refused: "no GPU 'h20', did you mean 'h200'?; there is ..., h100 and h200" for the kind "GPU".
CLI::Validator oneOf(const std::string &kind, const std::vector<std::string> &names);

/// A GPU or architecture that has a data sheet here, as findGpuModel() takes it.
CLI::Validator gpuName();
/// "random" or "random:prior_first=3,seed=1", as orderPoints() takes it: names and ranges of the options too.
CLI::Validator strategyWords();
/// "block_m=128,reduce=ordered": fields that configurations have, with numbers or the names of values. Whether they fit
/// is for the kernel to say.
CLI::Validator configFields();

/// A finite number between the two, both included; text that is no number in full is refused, too.
CLI::Validator realBetween(double least, double most);

} // namespace heddle::cli
