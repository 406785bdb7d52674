//===- Version.cpp - see Version.h --------------------------------------------------------===//
#include "Version.h"

namespace {

const char *given = nullptr;

} // namespace

void heddle::ranks::setVersion(const char *version) { given = version; }

extern "C" const char *versionOfRank() { return given ? given : HEDDLE_OWN_VERSION; }
