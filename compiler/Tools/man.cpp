// The manual page, in the language of troff's man macros, from the declarations of the verbs.
#include "compiler/Tools/CommandTree.h"
#include "compiler/Tools/Verb.h"

#include <CLI/CLI.hpp>

#include <iostream>

namespace heddle::cli {
namespace {

/// Text that means itself: a hyphen stays one, and no line is a request.
std::string literal(const std::string &text) {
  std::string result;
  for (const char c : text) {
    const bool beginsLine = result.empty() || result.back() == '\n';
    if (beginsLine && (c == '.' || c == '\''))
      result += "\\&";
    result += c == '\\'   ? "\\e"
              : c == '-'  ? "\\-"
              : c == '\'' ? "\\(aq"
              : c == '^'  ? "\\(ha"
              : c == '~'  ? "\\(ti"
              : c == '`'  ? "\\(ga"
                          : std::string(1, c);
  }
  return result;
}

std::string bold(const std::string &text) { return "\\fB" + literal(text) + "\\fR"; }
std::string italic(const std::string &text) { return "\\fI" + literal(text) + "\\fR"; }

std::string headOf(const OptionNode &option) {
  std::string head;
  for (const std::string &name : option.names)
    head += (head.empty() ? "" : ", ") + bold(name);
  if (!option.value.empty())
    head += head.empty() ? italic(option.value) : "=" + italic(option.value);
  return head;
}

void printOptions(const std::vector<OptionNode> &options) {
  for (const OptionNode &option : options) {
    std::cout << ".TP\n" << headOf(option) << '\n' << literal(option.help);
    if (!option.choices.empty() && option.kind == ValueKind::choice)
      std::cout << "; one of " << literal(CLI::detail::join(option.choices, ", "));
    std::cout << '\n';
  }
}

void printExamples(const std::vector<Example> &examples) {
  if (examples.empty())
    return;
  std::cout << ".PP\nExamples:\n.PP\n.nf\n.RS\n";
  for (const Example &example : examples)
    std::cout << literal(example.command) << (example.comment.empty() ? "" : literal("  # " + example.comment)) << '\n';
  std::cout << ".RE\n.fi\n";
}

void printCommand(const CommandNode &command) {
  std::cout << ".SS " << literal(command.path) << '\n' << literal(command.summary) << ".\n";
  printOptions(command.words);
  printOptions(command.options);
  if (command.subcommands.empty())
    printExamples(examplesOf(command.path));
}

constexpr const char *kHead = R"(.SH NAME
heddle \- compile, tune and run attention kernels from patterns
.SH SYNOPSIS
.B heddle
.I VERB
.RI [ OPERATION ]
.RI [ OPTION ...]
.RI [ WORD ...]
.SH DESCRIPTION
A pattern says which keys each query of attention may see and how scores are changed.
.B heddle
counts and draws patterns, compiles them to kernels, finds the fastest kernel on the GPU at hand and keeps it in a database.
.PP
A pattern is given as a file, as a name of the library inside the program, which
.B heddle help patterns
lists, or as \- for standard input.
A file wins over a name; library:NAME is always the library's.
.PP
Counts of tokens, rows, heads and elements may be written 8k, 1M or 1G, which are times 1024, 1024\(ha2 and 1024\(ha3, and 2\(ha20.
.PP
Results go to standard output, progress and diagnostics to standard error.
With \-\-json the result is one JSON object with a number
.IR schema ;
a failure is one with an object
.IR error .
)";

constexpr const char *kExitCodes = R"(.SH EXIT STATUS
.TP
0
Done.
.TP
1
The input is wrong: a file, a pattern, a plan, sizes that do not fit.
.TP
2
The command line is wrong: an option, a number, or a name that stands for nothing.
.TP
3
This machine lacks something, such as a GPU, NVRTC or room on a disk.
)";

int printPage(const CLI::App &root) {
  std::cout << ".\\\" Made by 'heddle man' from the declarations of the verbs.\n"
            << ".TH HEDDLE 1 \"\" " << literal("\"heddle " HEDDLE_VERSION "\"") << " \"User Commands\"\n"
            << kHead << ".SH VERBS\n";
  const std::vector<CommandNode> nodes = commandTree(root);
  for (size_t i = 1; i < nodes.size(); ++i)
    printCommand(nodes[i]);
  std::cout << kExitCodes << ".SH ENVIRONMENT\n";
  for (const Variable &variable : environment())
    std::cout << ".TP\n" << bold(variable.name) << '\n' << literal(variable.meaning) << '\n';
  return Ok;
}

} // namespace

Action addMan(CLI::App &command) {
  return [&command] { return printPage(rootOf(command)); };
}

} // namespace heddle::cli
