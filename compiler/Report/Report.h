// Owns the data of `heddle report`: every workload of a database with its winner, its trials and what is known of them,
// beside the winners of another one. What is not known is null and said why; nothing is guessed.
#pragma once

#include "compiler/Report/KnownProblem.h"
#include "compiler/Report/SlowKernels.h"
#include "runtime/Store/Store.h"

#include <nlohmann/json.hpp>
#include <string>

namespace heddle::report {

/// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

struct ReportRequest {
  const Store *store = nullptr;   ///< never null
  const Store *against = nullptr; ///< or null
  std::vector<KnownProblem> problems;
  std::optional<std::vector<SlowKernel>> slow = {}; ///< of processes that somebody asked; none: nobody did
};

/// What `heddle report --json` prints, and the page is drawn from (Page/sections.js). notFound: the store has neither
/// winners nor trials. Otherwise as reading the stores and preparing the patterns fail.
Result<Json> makeReport(const ReportRequest &request);

// Owns the page that needs nothing but itself: style, script, chart library and data are inside, and its policy forbids
// it to ask any network. Data is JSON that scripts read and put in as text, so that no string of a database becomes
// markup.

/// The same data gives the same bytes.
std::string reportPage(const nlohmann::ordered_json &data);

/// JSON that may stand inside <script>: ASCII, without <, > and &. Bytes that are no UTF-8 are replaced.
std::string scriptJson(const nlohmann::ordered_json &data);

} // namespace heddle::report
