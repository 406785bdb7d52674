#include "compiler/Pattern/PatternDiagnostics.h"
#include "runtime/Core/SafeText.h"

#include "llvm/Support/raw_ostream.h"

#include <algorithm>

namespace heddle {
namespace {

constexpr size_t kMostColumns = 200; ///< of a source line that is shown whole
constexpr size_t kColumnsBefore = 80;

const char *kindName(llvm::SourceMgr::DiagKind kind) {
  switch (kind) {
  case llvm::SourceMgr::DK_Error:
    return "error";
  case llvm::SourceMgr::DK_Warning:
    return "warning";
  case llvm::SourceMgr::DK_Remark:
    return "remark";
  case llvm::SourceMgr::DK_Note:
    return "note";
  }
  return "error";
}

/// Tabs are one column wide, as the mark counts them.
std::string shown(llvm::StringRef part) {
  std::string line = part.str();
  std::replace(line.begin(), line.end(), '\t', ' ');
  return safeLine(line, 6 * kMostColumns);
}

bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// What of a line lies around the mark, and the mark below it.
std::string markedLine(llvm::StringRef line, size_t column) {
  column = std::min(column, line.size());
  size_t begin = line.size() <= kMostColumns || column < kColumnsBefore ? 0 : column - kColumnsBefore;
  while (begin < column && isContinuation(line[begin]))
    ++begin;
  size_t end = std::min(line.size(), begin + kMostColumns);
  while (end > column && end < line.size() && isContinuation(line[end]))
    --end;
  const std::string before = (begin > 0 ? "..." : "") + shown(line.slice(begin, column));
  const std::string after = shown(line.slice(column, end)) + (end < line.size() ? "..." : "");
  const auto columns = std::count_if(before.begin(), before.end(), [](char c) { return !isContinuation(c); });
  return before + after + "\n" + std::string(size_t(columns), ' ') + "^\n";
}

} // namespace

PatternDiagnostics::PatternDiagnostics(mlir::MLIRContext *context) : stream(text), handler(sources, context, stream) {
  sources.setDiagHandler(render, this);
}

void PatternDiagnostics::render(const llvm::SMDiagnostic &diagnostic, void *self) {
  auto &to = *static_cast<PatternDiagnostics *>(self);
  if (to.text.size() > kMostMessageBytes)
    return; // take() says that there was more
  const llvm::StringRef line = diagnostic.getLineContents();
  const bool hasLine = diagnostic.getLineNo() > 0 && diagnostic.getColumnNo() >= 0;
  if (!hasLine || (line.size() <= kMostColumns && safeText(line) == line)) {
    diagnostic.print(nullptr, to.stream, /*ShowColors=*/false);
    return;
  }
  to.stream << (diagnostic.getFilename() == "-" ? "<stdin>" : diagnostic.getFilename()) << ':' << diagnostic.getLineNo()
            << ':' << diagnostic.getColumnNo() + 1 << ": " << kindName(diagnostic.getKind()) << ": "
            << diagnostic.getMessage() << '\n'
            << markedLine(line, size_t(diagnostic.getColumnNo()));
}

std::string PatternDiagnostics::take() {
  std::string taken = std::move(text);
  text.clear();
  while (!taken.empty() && taken.back() == '\n')
    taken.pop_back();
  return safeMessage(taken);
}

} // namespace heddle
