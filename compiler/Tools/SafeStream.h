// Puts safeText between std::cout or std::cerr and where they write: whatever a verb prints of names, source lines and
// databases, no control character of theirs gets through. Bytes of artefacts go around it (writeArtifact).
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace heddle::cli {

/// As long as it lives; its end flushes what it holds back.
class SafeStream : std::streambuf {
public:
  explicit SafeStream(std::ostream &stream);
  ~SafeStream() override;
  SafeStream(const SafeStream &) = delete;

private:
  int_type overflow(int_type character) override;
  std::streamsize xsputn(const char *text, std::streamsize count) override;
  int sync() override;
  /// So many bytes of what is held.
  bool write(size_t bytes);

  std::ostream &stream;
  std::streambuf *to;
  std::string held;
};

/// printf to a stream, so that SafeStream sees it.
[[gnu::format(printf, 2, 3)]] void printTo(std::ostream &stream, const char *format, ...);

} // namespace heddle::cli
