#include "compiler/Tools/SafeStream.h"
#include "runtime/Core/SafeText.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace heddle::cli {

SafeStream::SafeStream(std::ostream &stream) : stream(stream), to(stream.rdbuf(this)) {}

SafeStream::~SafeStream() {
  stream.flush();
  stream.rdbuf(to);
}

bool SafeStream::write(size_t bytes) {
  const std::string safe = safeText(std::string_view(held).substr(0, bytes));
  held.erase(0, bytes);
  return to->sputn(safe.data(), std::streamsize(safe.size())) == std::streamsize(safe.size());
}

SafeStream::int_type SafeStream::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof()))
    return traits_type::not_eof(character);
  const char one = traits_type::to_char_type(character);
  return xsputn(&one, 1) == 1 ? character : traits_type::eof();
}

std::streamsize SafeStream::xsputn(const char *text, std::streamsize count) {
  constexpr size_t kMostHeld = 65536;
  held.append(text, size_t(count));
  if (held.size() < kMostHeld)
    return count;
  return write(wholeCharacters(held)) ? count : 0;
}

int SafeStream::sync() {
  const bool isWritten = write(held.size());
  return to->pubsync() == 0 && isWritten ? 0 : -1;
}

void printTo(std::ostream &stream, const char *format, ...) {
  va_list arguments, again;
  va_start(arguments, format);
  va_copy(again, arguments);
  std::string text(size_t(std::max(0, std::vsnprintf(nullptr, 0, format, arguments))) + 1, '\0');
  va_end(arguments);
  std::vsnprintf(text.data(), text.size(), format, again);
  va_end(again);
  text.pop_back();
  stream << text;
}

} // namespace heddle::cli
