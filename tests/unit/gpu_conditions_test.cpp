// Clock and power from a management library, and what is said where there is none.
#include "support/Places.h"
#include "compiler/Measure/GpuConditions.h"
#include "tests/unit/support/StandingClock.h"

#include <doctest/doctest.h>

#include <dlfcn.h>

using namespace heddle;

TEST_CASE("clock and power are read, and not more often than they change") {
  Result<ConditionMeter> meter = ConditionMeter::open("00000000:1b:00.0", test::places().fakeNvml);
  REQUIRE_MESSAGE(meter.isOk(), meter.status().str());
  const Conditions first = meter->read();
  CHECK(first.smClockMhz == 1755);
  CHECK(first.powerWatts == 612.5);
  const Conditions second = meter->read();
  CHECK(second.smClockMhz == 1755);
  const int *questions =
      static_cast<const int *>(dlsym(dlopen(test::places().fakeNvml, RTLD_NOW), "fakeNvmlQuestions"));
  REQUIRE(questions);
  test::moveClock(std::chrono::milliseconds(19));
  meter->read();
  CHECK(*questions == 1);
  test::moveClock(std::chrono::milliseconds(1));
  meter->read();
  CHECK(*questions == 2);
}

TEST_CASE("no library and another GPU are reasons") {
  CHECK(ConditionMeter::open("00000000:1b:00.0", "/no/libnvidia-ml.so").status().message() ==
        "no clock and power: /no/libnvidia-ml.so cannot be opened");
  CHECK(ConditionMeter::open("00000000:1c:00.0", test::places().fakeNvml)
            .status()
            .message()
            .find("does not know the GPU at 00000000:1c:00.0") != std::string::npos);
}
