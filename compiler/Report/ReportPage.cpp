#include "compiler/Report/Report.h"
#include "codegen/Skeletons/Shared/EmbeddedSources.h"

#include <cassert>
#include <string_view>

namespace heddle {
const std::vector<EmbeddedFile> &reportPageFiles();
const std::vector<EmbeddedFile> &reportChartFiles();
} // namespace heddle

namespace heddle::report {

std::string scriptJson(const nlohmann::ordered_json &data) {
  const std::string text = data.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::ordered_json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (char letter : text) {
    switch (letter) { // outside of strings, JSON has none of them
    case '<':
      safe += "\\u003c";
      break;
    case '>':
      safe += "\\u003e";
      break;
    case '&':
      safe += "\\u0026";
      break;
    default:
      safe += letter;
    }
  }
  return safe;
}

static std::string_view fileCalled(std::string_view name) {
  for (const auto *files : {&reportPageFiles(), &reportChartFiles()})
    for (const EmbeddedFile &file : *files)
      if (file.name == name)
        return file.text;
  assert(false && "no such file of the page");
  return {};
}

std::string reportPage(const nlohmann::ordered_json &data) {
  // "@{report.css}" stands for that file; what is put in is not looked at again.
  std::string_view rest = fileCalled("report.html");
  std::string page;
  for (size_t open; (open = rest.find("@{")) != std::string_view::npos;) {
    const size_t close = rest.find('}', open);
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    page += rest.substr(0, open);
    if (name == "data")
      page += scriptJson(data);
    else
      page += fileCalled(name);
    rest.remove_prefix(close + 1);
  }
  return page.append(rest);
}

} // namespace heddle::report
