// Owns the colours of pictures that say how much or what for, told apart by lightness.
#pragma once

#include <string>

namespace heddle::views {

/// From light to dark.
inline constexpr const char *kBlues[] = {"#dbe9f6", "#a9cfe5", "#5ba3d0", "#2070b4", "#08306b"};
inline constexpr const char *kBrowns[] = {"#feedde", "#fdd0a2", "#fdae6b", "#f16913", "#d94801", "#a63603", "#7f2704"};
inline constexpr const char *kGreys[] = {"#d8d8d8", "#bdbdbd", "#737373"};
inline constexpr const char *kWhite = "#ffffff", *kRed = "#c0392b";

inline std::string filled(const char *colour) { return std::string("fill=\"") + colour + "\""; }

} // namespace heddle::views
