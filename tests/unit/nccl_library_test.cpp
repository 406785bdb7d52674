//===- nccl_library_test.cpp - NCCL that is there, is old, or is not --------===//
#include "support/Places.h"
#include "nccl_fixture.h"

#include <dlfcn.h>

using namespace heddle;
using namespace heddle::test;

TEST_CASE("no NCCL: what was looked for and what works") {
  startNccl("/no/such/libnccl.so");
  int communicator = 0;
  for (const Status &status : {NcclTransport::makeId().status(), joinRank({}, 0, 2).status(),
                               NcclTransport::borrow(&communicator, {0, 2}).status()}) {
    CHECK(status.code() == StatusCode::unavailable);
    CHECK_MESSAGE(says(status, "open NCCL: cannot open '/no/such/libnccl.so': "), status.str());
    CHECK(says(status, "nvidia-nccl-cu13"));
    CHECK(says(status, "HEDDLE_NCCL_LIBRARY"));
  }
  startNccl(); // a failure is not remembered
  CHECK(require(NcclLibrary::open())->path == test::places().fakeNccl);
}

TEST_CASE("a library that is not NCCL is named with what it lacks") {
  startNccl(test::places().fakeCuda);
  const Status status = NcclLibrary::open().status();
  CHECK(status.code() == StatusCode::unavailable);
  CHECK_MESSAGE(says(status, std::string("'") + test::places().fakeCuda + "' has no function nccl"), status.str());
  CHECK(says(status, "NCCL 2.7 or later"));
}

TEST_CASE("the NCCL that the process has loaded serves; an old one makes no communicators and uses those of others") {
  void *loaded = dlopen(test::places().fakeOldNccl, RTLD_NOW | RTLD_LOCAL);
  REQUIRE_MESSAGE(loaded, dlerror());
  startNccl(""); // names none
  const NcclLibrary *nccl = require(NcclLibrary::open());
  CHECK(nccl->path == "libnccl.so.2");
  CHECK(nccl->versionText() == "2.13.4");
  CHECK(reinterpret_cast<void *>(nccl->getUniqueId) == dlsym(loaded, "ncclGetUniqueId"));
  const Status refused = joinRank({}, 0, 2).status();
  CHECK(refused.code() == StatusCode::unavailable);
  CHECK_MESSAGE(says(refused, "NCCL 2.13.4 of 'libnccl.so.2' makes no communicators that can be given up; 2.14"),
                refused.str());
  auto make = reinterpret_cast<decltype(&fake::fakeNcclCommunicator)>(dlsym(loaded, "fakeNcclCommunicator"));
  const nccl::UniqueId id = require(NcclTransport::makeId());
  require(NcclTransport::borrow(make(&id, 0, 1, 0), {0, 1}).status());
}

TEST_CASE("versions are read as NCCL writes them") {
  NcclLibrary nccl;
  for (const auto &[version, text] : {std::pair{2708, "2.7.8"}, {21304, "2.13.4"}, {23203, "2.32.3"}}) {
    nccl.version = version;
    CHECK(nccl.versionText() == text);
  }
}
