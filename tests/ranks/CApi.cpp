// The C interface of this program alone, whose version a rank may choose (Version.h).
#include "Version.h"

#define HEDDLE_VERSION versionOfRank()
#include "runtime/Api/CApi.cpp"
