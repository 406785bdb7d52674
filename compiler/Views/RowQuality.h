//===- RowQuality.h - rows of a pattern beside dense rows --------*- C++ -*-===//
#ifndef HEDDLE_COMPILER_VIEWS_ROWQUALITY_H
#define HEDDLE_COMPILER_VIEWS_ROWQUALITY_H

#include "compiler/Views/KeptRows.h"
#include "compiler/Views/Quality.h"

namespace heddle::views {

/// Everything of Quality that needs weights.
RowQuality measureRows(KeptRows &kept, const QualityRequest &request);

} // namespace heddle::views

#endif
