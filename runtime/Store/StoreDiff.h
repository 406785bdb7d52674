//===- StoreDiff.h - how two databases differ -------------------------------===//
// Owns the comparison of two open stores by keys. When a row was written is not compared.
#ifndef HEDDLE_RUNTIME_STORE_STOREDIFF_H
#define HEDDLE_RUNTIME_STORE_STOREDIFF_H

#include "runtime/Store/Store.h"

namespace heddle {

// Fails only if one of the files cannot be read. Lists are in the order of Store::winners and Store::names.
Result<StoreDiff> diffStores(const Store &a, const Store &b);

} // namespace heddle

#endif
