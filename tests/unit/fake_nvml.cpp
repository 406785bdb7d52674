// A management library that knows one GPU, counts what it is asked, and can be told nothing.
extern "C" {
__attribute__((visibility("default"))) int fakeNvmlQuestions = 0;

__attribute__((visibility("default"))) int nvmlInit_v2() { return 0; }

__attribute__((visibility("default"))) int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  const char known[] = "00000000:1b:00.0";
  for (int i = 0; known[i] || bus[i]; ++i)
    if (known[i] != bus[i])
      return 6; // NVML_ERROR_NOT_FOUND
  *device = &fakeNvmlQuestions;
  return 0;
}

__attribute__((visibility("default"))) int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *mhz) {
  *mhz = kind == 1 && device == &fakeNvmlQuestions ? 1755 : 1;
  ++fakeNvmlQuestions;
  return 0;
}

__attribute__((visibility("default"))) int nvmlDeviceGetPowerUsage(void *, unsigned *milliwatts) {
  *milliwatts = 612500;
  return 0;
}
}
