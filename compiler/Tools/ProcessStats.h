// Owns the form of the counters in the JSON of commands that compile, search and launch: keys as those of heddle.stats(),
// reasons of refusals as in its text.
#pragma once

#include "compiler/Tools/Output.h"

namespace heddle::cli {

Json processStats();

} // namespace heddle::cli
