//===- ReportInputs.h - what a report is told beside databases --*- C++ -*-===//
// Owns the options that say which calls the rows of a database are of, and what its patterns are called.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_TOOLS_REPORTINPUTS_H
#define HEDDLE_COMPILER_TOOLS_REPORTINPUTS_H

#include "compiler/Report/KnownProblem.h"
#include "compiler/Tools/Model.h"

#include <map>
#include <string>
#include <vector>

namespace heddle::cli {

struct ReportInputs {
  std::vector<std::string> plans, texts; ///< files of `heddle sweep`; problems as recorded tables spell them
  std::string patternFolder;

  void add(CLI::App &command);
  /// What the others read. As those of problems(): a plan or call that cannot be read is an error.
  Result<std::vector<std::string>> files() const;
  /// Of all plans, then the others; equal labels once. A file or call that does not exist or fit is an error.
  Result<std::vector<report::KnownProblem>> problems() const;
  /// What the patterns of the folder's files are called, by digest. notFound: no such folder; a file that is no pattern
  /// is passed over with a word on stderr.
  Result<std::map<std::string, std::string>> patternFiles() const;

private:
  struct Wanted {
    ModelProblem problem;
    std::string gpu; ///< "" is any
  };
  Result<std::vector<Wanted>> wanted() const;
  /// Of the folder, in order. notFound: there is none.
  Result<std::vector<std::string>> filesOfFolder() const;
};

} // namespace heddle::cli

#endif
