// Compares declarations of our own with those of a library's header, in the compiler.
#ifndef HEDDLE_TESTS_UNIT_SAME_SIGNATURE_H
#define HEDDLE_TESTS_UNIT_SAME_SIGNATURE_H

#include <type_traits>

namespace heddle::test {

// Two types pass a call the same way: both pointers (to whatever), or numbers of one size and kind. cuuint64_t
// and size_t are spelled differently from ours, enums are their underlying integers.
template <class Ours, class Theirs> constexpr bool isSameInCall() {
  if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>)
    return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
  else
    return sizeof(Ours) == sizeof(Theirs) && std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;
}

// What pointers to numbers point to has the same size as well.
template <class Ours, class Theirs> constexpr bool isSameTarget() {
  using O = std::remove_pointer_t<Ours>;
  using T = std::remove_pointer_t<Theirs>;
  if constexpr (!std::is_pointer_v<Ours> || std::is_void_v<O> || std::is_void_v<T>)
    return true;
  else if constexpr (std::is_arithmetic_v<O> || std::is_enum_v<T>)
    return sizeof(O) == sizeof(T);
  else
    return true;
}

template <class Ours, class Theirs> struct Signature;
template <class... Ours, class Code, class... Theirs> struct Signature<void(Ours...), Code(Theirs...)> {
  static constexpr bool hasSameCount = sizeof...(Ours) == sizeof...(Theirs);
  static constexpr bool matches() {
    if constexpr (hasSameCount)
      return ((isSameInCall<Ours, Theirs>() && isSameTarget<Ours, Theirs>()) && ...);
    else
      return false;
  }
};

} // namespace heddle::test

#endif
