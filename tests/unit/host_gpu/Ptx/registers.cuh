// On the host: where things are kept is its compiler's matter.
#pragma once

namespace heddle {
namespace ptx {

template <class T> void keepInMemory(T &) {}
template <class T> void keepHere(T *&) {}
inline void keepHere(float &) {}
inline void keepHere(int32_t &) {}
template <int Registers> void shrinkRegisters() {}
template <int Registers> void growRegisters() {}

} // namespace ptx
} // namespace heddle
