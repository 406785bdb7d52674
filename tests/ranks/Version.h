//===- Version.h - the version that a rank says it has ---------------------------------===//
#ifndef HEDDLE_TESTS_RANKS_VERSION_H
#define HEDDLE_TESTS_RANKS_VERSION_H

#ifdef __cplusplus
namespace heddle::ranks {
// Null: its own.
void setVersion(const char *version);
} // namespace heddle::ranks
extern "C"
#endif
    // What heddle_version() of this program returns: runtime/Api/CApi.cpp is compiled for it once more.
    const char *versionOfRank(void);

#endif
