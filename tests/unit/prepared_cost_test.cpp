//===- prepared_cost_test.cpp - launches whose instructions are counted -----===//
// What prepared_cost.sh runs under callgrind, once with a runtime that counts launches and once with one that does not.
#include "runtime_fixture.h"

using namespace heddle;

TEST_CASE("[14] a thousand launches of a prepared call") {
  const test::Session session;
  test::ForwardCall call;
  heddle_prepared *prepared = nullptr;
  REQUIRE(heddle_prepare(session.kernel, &call.args, &prepared) == HEDDLE_OK);
  int failed = 0;
  for (int i = 0; i < 1000; ++i)
    failed += heddle_prepared_launch(prepared, nullptr) != HEDDLE_OK;
  CHECK(failed == 0);
  CHECK(fake::fakeCudaCalls("cuGraphLaunch") == 1000);
  heddle_prepared_close(prepared);
}
