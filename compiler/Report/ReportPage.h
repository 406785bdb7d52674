//===- ReportPage.h - a report as one page of HTML --------------*- C++ -*-===//
// Owns the page that needs nothing but itself: style, script, chart library and data are inside, and its policy forbids
// it to ask any network. Data is JSON that scripts read and put in as text, so that no string of a database becomes
// markup.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_COMPILER_REPORT_REPORTPAGE_H
#define HEDDLE_COMPILER_REPORT_REPORTPAGE_H

#include <nlohmann/json.hpp>

#include <string>

namespace heddle::report {

/// The same data gives the same bytes.
std::string reportPage(const nlohmann::ordered_json &data);

/// JSON that may stand inside <script>: ASCII, without <, > and &. Bytes that are no UTF-8 are replaced.
std::string scriptJson(const nlohmann::ordered_json &data);

} // namespace heddle::report

#endif
