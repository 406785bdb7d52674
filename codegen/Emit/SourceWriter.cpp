// Layout only: two spaces a level, one statement a line.
#include "codegen/Emit/SourceWriter.h"

namespace heddle {

std::string joinComma(const std::vector<std::string> &items) {
  std::string joined;
  for (const std::string &item : items)
    joined += (joined.empty() ? "" : ", ") + item;
  return joined;
}

void SourceWriter::line(std::string_view text) {
  if (!text.empty())
    buffer.append(2 * depth, ' ').append(text);
  buffer += '\n';
}

void SourceWriter::comment(std::string_view text) {
  while (true) {
    size_t end = text.find('\n');
    line("// " + std::string(text.substr(0, end)));
    if (end == std::string_view::npos)
      return;
    text.remove_prefix(end + 1);
  }
}

void SourceWriter::include(std::string_view file) { line("#include \"" + std::string(file) + "\""); }

void SourceWriter::constant(std::string_view name, long long value) {
  line("static constexpr int " + std::string(name) + " = " + std::to_string(value) + ";");
}

void SourceWriter::fields(std::string_view type, const std::vector<std::string> &names) {
  line(std::string(type) + " " + joinComma(names) + ";");
}

void SourceWriter::text(std::string_view finished) {
  buffer += finished;
  if (!finished.empty() && finished.back() != '\n')
    buffer += '\n';
}

std::string SourceWriter::call(std::string_view callee, const std::vector<std::string> &arguments) {
  return std::string(callee) + "(" + joinComma(arguments) + ")";
}

SourceWriter::Block SourceWriter::open(const std::string &head, const char *tail) {
  line(head + " {");
  ++depth;
  return Block(*this, tail);
}

void SourceWriter::close(const char *tail) {
  --depth;
  line(tail);
}

} // namespace heddle
