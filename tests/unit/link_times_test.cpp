//===- link_times_test.cpp - rates of links ---------------------------------===//
#include "compiler/Measure/LinkTimes.h"
#include "nccl_fixture.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr int64_t kMib = int64_t(1) << 20;

LinkTimes timesOf(std::vector<LinkSample> samples) {
  LinkTimes times;
  times.samples = std::move(samples);
  fitLinks(times);
  return times;
}

} // namespace

TEST_CASE("a latency and a rate that explain all times are found") {
  auto us = [](int64_t bytes) { return 12.5 + double(bytes) / 340e3; };
  const LinkTimes times = timesOf({{kMib, us(kMib)}, {64 * kMib, us(64 * kMib)}, {1024 * kMib, us(1024 * kMib)}});
  CHECK(times.latencyUs == doctest::Approx(12.5));
  CHECK(times.gbps == doctest::Approx(340));
}

TEST_CASE("one size has a rate and no latency; a latency is never negative") {
  CHECK(timesOf({{kMib, 10}}).latencyUs == 0);
  CHECK(timesOf({{kMib, 10}}).gbps == doctest::Approx(double(kMib) / 1e4));
  const LinkTimes slower = timesOf({{kMib, 1}, {2 * kMib, 4}});
  CHECK(slower.latencyUs == 0);
  CHECK(slower.gbps > 0);
}

TEST_CASE("where larger messages take no longer, a rate is of all their time") {
  for (double more : {-1.0, -1e-14, 0.0, 1e-14, 1.0}) {
    const LinkTimes same = timesOf({{kMib, 61.8}, {16 * kMib, 61.8 + more}});
    CHECK(same.latencyUs == 0);
    CHECK(same.gbps > double(kMib) / 62.8e3);
    CHECK(same.gbps < double(16 * kMib) / 60.8e3);
  }
  CHECK(timesOf({{kMib, 50}, {16 * kMib, 60}}).latencyUs > 0);
}

TEST_CASE("each GPU is a rank and every size is measured") {
  startNccl();
  fake::fakeCudaSetDevices(3);
  const LinkTimes times = require(measureLinks({kMib, 20 * kMib})); // more than a chunk of host memory
  CHECK(times.gpus.size() == 3);
  CHECK(times.gpus[2].pci == "00000000:1d:00.0");
  REQUIRE(times.samples.size() == 2);
  for (const LinkSample &sample : times.samples)
    CHECK(sample.us > 0);
  const LinkRecord record = recordOf(times);
  CHECK(record.deviceName == "Fake GPU");
  CHECK(record.ranks == 3);
  CHECK(record.hosts == 1);
  CHECK(record.gbps == times.gbps);
  CHECK(record.latencyUs == times.latencyUs);
  CHECK(record.messages.find("1048576:") == 0);
  CHECK(record.messages.find(" 20971520:") != std::string::npos);
  CHECK(fake::fakeCudaLiveAllocations() == 0);
  CHECK(fake::fakeNcclLive() == 0);
}

TEST_CASE("what one rank is refused ends the others") {
  startNccl();
  fake::fakeCudaSetDevices(3);
  fake::fakeCudaFail("cuMemsetD8Async", 719, 3 + 2); // a gather and a message of each rank, but the last one's
  const Status status = measureLinks({kMib}).status();
  CHECK(status.code() == StatusCode::internal);
  CHECK_MESSAGE(says(status, "fill: cuMemsetD8Async failed"), status.str());
  CHECK(fake::fakeNcclLive() == 0);
}

TEST_CASE("ranks that are processes meet in a file, which is gone afterwards") {
  startNccl();
  const std::string file =
      (std::filesystem::temp_directory_path() / ("heddle-links-" + std::to_string(getpid()))).string();
  std::vector<LinkTimes> times(3);
  for (const Status &status : onRanks(firstRanks(3), [&](int32_t rank) -> Status {
         HEDDLE_ASSIGN(times[size_t(rank)], measureLinks({kMib}, {rank, 3, file}));
         return {};
       }))
    require(status);
  CHECK(!std::filesystem::exists(file));
  for (const LinkTimes &same : times) {
    CHECK(same.samples[0].us == times[0].samples[0].us);
    CHECK(same.gpus[1].pci == "00000000:1c:00.0");
    CHECK(same.gpus[1].name == "Fake GPU");
  }
  std::ofstream(file) << "of an earlier run";
  const Status exists = measureLinks({kMib}, {0, 3, file}).status();
  CHECK(exists.code() == StatusCode::invalidArgument);
  CHECK_MESSAGE(says(exists, "' exists; it is where ranks meet"), exists.str());
  CHECK(std::filesystem::remove(file));
}
