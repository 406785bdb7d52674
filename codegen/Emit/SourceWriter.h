// Owns the layout of generated text: indentation, braces and constants. Everything that is not
// produced from IR goes through this class, so braces always match and equal calls give equal bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

class SourceWriter {
public:
  // Braces: written as `head {`, indented body, and `}` or `};` when it goes out of scope.
  class [[nodiscard]] Block {
  public:
    ~Block() { end(); }
    // Closes now instead of at the end of the scope.
    void end() {
      if (tail)
        writer.close(tail);
      tail = nullptr;
    }
    Block(const Block &) = delete;
    Block &operator=(const Block &) = delete;

  private:
    friend class SourceWriter;
    Block(SourceWriter &writer, const char *tail) : writer(writer), tail(tail) {}
    SourceWriter &writer;
    const char *tail;
  };

  // One line per line of `text`, each behind "// ".
  void comment(std::string_view text);
  // One line as it is; an empty one separates paragraphs.
  void line(std::string_view text = {});
  void include(std::string_view file);
  // `static constexpr int name = value;`
  void constant(std::string_view name, long long value);
  // `type a, b;`
  void fields(std::string_view type, const std::vector<std::string> &names);
  // Finished text of another writer or printer, unchanged; a missing last newline is added.
  void text(std::string_view finished);

  Block structure(std::string_view name) { return open("struct " + std::string(name), "};"); }
  Block function(std::string_view signature) { return open(std::string(signature), "}"); }
  // A call in source form: `callee(a, b)`.
  static std::string call(std::string_view callee, const std::vector<std::string> &arguments);

  std::string take() { return std::move(buffer); }

private:
  Block open(const std::string &head, const char *tail);
  void close(const char *tail);

  std::string buffer;
  int depth = 0;
};

// "a, b, c".
std::string joinComma(const std::vector<std::string> &items);

} // namespace heddle
