// On the host: where things are kept is its compiler's matter.
#pragma once

namespace heddle {
namespace ptx {

template <class T> void keepInMemory(T &) {}

} // namespace ptx
} // namespace heddle
