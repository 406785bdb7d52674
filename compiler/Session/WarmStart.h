//===- WarmStart.h - what won nearby ----------------------------*- C++ -*-===//
// Owns the points that a search tries first: the default, then winners of the same pattern, types and head dims at
// other sizes or on other GPUs, the nearest first; and the winner so far, which it has to beat.
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/Session/TuneSpace.h"
#include "runtime/Store/Store.h"

namespace heddle {

/// At most so many winners are taken over.
inline constexpr size_t kMostWarmStarts = 8;

/// Texts of points, without repetition. Tuned winners only, of every generator: a configuration that is no point of the
/// space any more is left out. Failures are those of the stores.
Result<std::vector<std::string>> warmStarts(const std::vector<const Store *> &stores, const WinnerKey &key,
                                            const TuneSpace &space);

/// The point that the store's tuned winner of the very key is; empty if there is none, or it is none of the space.
Result<std::string> incumbentOf(const Store &store, const WinnerKey &key, const TuneSpace &space);

} // namespace heddle
