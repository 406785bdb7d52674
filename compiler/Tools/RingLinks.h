// Owns the operation of `heddle ring` that measures what `heddle ring plan --links` is told.
#pragma once

#include "compiler/Tools/Verb.h"

namespace heddle::cli {

Action addRingLinks(CLI::App &command);

} // namespace heddle::cli
