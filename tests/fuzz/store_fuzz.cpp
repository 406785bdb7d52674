//===- store_fuzz.cpp - damaged databases -----------------------------------===//
// Opens what may be anything, asks it everything, and writes to it.
//===----------------------------------------------------------------------===//
#include "runtime/Store/Store.h"
#include "tests/fuzz/OwnFile.h"

using namespace heddle;

static void readAll(const Store &store) {
  LookupQuery query;
  (void)store.lookup(query);
  (void)store.counts();
  (void)store.winners();
  (void)store.allTrials();
  (void)store.devices();
  if (auto names = store.names())
    for (const NameRecord &name : *names)
      (void)store.findName(name.name);
  if (auto kernels = store.kernels())
    for (const KernelSummary &kernel : *kernels)
      (void)store.kernel(kernel.record.contentKey);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static test::OwnFile place("kernels.db");
  StoreOptions options;
  options.mode = StoreMode::readWrite;
  const std::string path = place.write(data, size);
  (void)Store::previewMerge(path + ".none", {path});
  FUZZ_REQUIRE(place.holds(data, size), "a preview changed a file");
  Result<Store> store = Store::open(path, options);
  if (!store) {
    FUZZ_REQUIRE(size == 0 || place.holds(data, size), "a refused file was changed");
    return 0;
  }
  readAll(*store);
  (void)store->verify();
  (void)store->exportTo(path + ".out", {});
  (void)store->prune({});
  DeviceRecord device;
  device.deviceName = "GPU";
  (void)store->recordDevice(device);
  return 0;
}
