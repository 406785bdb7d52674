//===- nccl_h_test.cpp - our declarations against nccl.h --------------------===//
// Everything here is checked by the compiler; where nccl.h does not exist the test says that it was skipped.
#include "runtime/Distributed/NcclApi.h"

#include <doctest/doctest.h>

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include "same_signature.h"

#include <cstddef>
#include <nccl.h>

namespace {

namespace cuda = heddle::cuda;
namespace ours {
using namespace heddle::nccl;
#define HEDDLE_CHECK(member, symbol, ...)                                                                              \
  static_assert(heddle::test::Signature<void(__VA_ARGS__), std::remove_pointer_t<decltype(&::symbol)>>::matches(),     \
                #symbol);
HEDDLE_NCCL_FUNCTIONS(HEDDLE_CHECK)
HEDDLE_NCCL_OPTIONAL_FUNCTIONS(HEDDLE_CHECK)
HEDDLE_NCCL_TEXTS(HEDDLE_CHECK)
#undef HEDDLE_CHECK
} // namespace ours

#define HEDDLE_SAME(name, value) static_assert(int64_t(heddle::nccl::name) == int64_t(value), #name)
HEDDLE_SAME(kSuccess, ncclSuccess);
HEDDLE_SAME(kUnhandledCudaError, ncclUnhandledCudaError);
HEDDLE_SAME(kSystemError, ncclSystemError);
HEDDLE_SAME(kInternalError, ncclInternalError);
HEDDLE_SAME(kInvalidArgument, ncclInvalidArgument);
HEDDLE_SAME(kInvalidUsage, ncclInvalidUsage);
HEDDLE_SAME(kRemoteError, ncclRemoteError);
HEDDLE_SAME(kInProgress, ncclInProgress);
HEDDLE_SAME(kUint8, ncclUint8);
static_assert(sizeof(heddle::nccl::UniqueId) == sizeof(ncclUniqueId) &&
              alignof(heddle::nccl::UniqueId) == alignof(ncclUniqueId));

// The front of every later configuration.
static_assert(offsetof(heddle::nccl::Config, size) == offsetof(ncclConfig_t, size));
static_assert(offsetof(heddle::nccl::Config, magic) == offsetof(ncclConfig_t, magic));
static_assert(offsetof(heddle::nccl::Config, version) == offsetof(ncclConfig_t, version));
static_assert(offsetof(heddle::nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
static_assert(offsetof(heddle::nccl::Config, cgaClusterSize) == offsetof(ncclConfig_t, cgaClusterSize));
static_assert(offsetof(heddle::nccl::Config, minCTAs) == offsetof(ncclConfig_t, minCTAs));
static_assert(offsetof(heddle::nccl::Config, maxCTAs) == offsetof(ncclConfig_t, maxCTAs));
static_assert(offsetof(heddle::nccl::Config, netName) == offsetof(ncclConfig_t, netName));
static_assert(offsetof(heddle::nccl::Config, splitShare) == offsetof(ncclConfig_t, splitShare));
static_assert(sizeof(heddle::nccl::Config) <= sizeof(ncclConfig_t));
HEDDLE_SAME(kConfigVersion, NCCL_VERSION(2, 18, 0));
HEDDLE_SAME(kNotGiven, NCCL_CONFIG_UNDEF_INT);
constexpr ncclConfig_t kTheirs = NCCL_CONFIG_INITIALIZER;
HEDDLE_SAME(kConfigMagic, kTheirs.magic);

} // namespace

TEST_CASE("the declared interface of NCCL is nccl.h's") {}

#else

TEST_CASE("the declared interface of NCCL is nccl.h's (skipped: this machine has no nccl.h with cuda_runtime.h)" *
          doctest::skip()) {}

#endif
