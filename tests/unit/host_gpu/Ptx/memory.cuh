// On the host: an address in shared memory is a distance from its beginning. Dynamic memory of kernels that copy
// through tensor maps (tensor_copy.cuh) begins behind what the driver reserves.
#pragma once

namespace heddle {
namespace ptx {

inline unsigned char *launchedMemory() { return ::sharedMemory + host_gpu::rank() * kSharedBytes; }

inline uint32_t sharedAddress(const void *pointer) {
  constexpr uint32_t kReservedBytes = 1024;
  const auto place = static_cast<const unsigned char *>(pointer);
  const bool isInside = place >= ::sharedMemory && place < ::sharedMemory + sizeof ::sharedMemory;
  return isInside ? uint32_t(place - ::sharedMemory) : kReservedBytes;
}

inline void loadShared8(uint32_t address, int32_t (&words)[2]) { std::memcpy(words, ::sharedMemory + address, 8); }
inline void loadShared16(uint32_t address, float (&values)[4]) { std::memcpy(values, ::sharedMemory + address, 16); }
inline void loadShared16(uint32_t address, int32_t (&words)[4]) { std::memcpy(words, ::sharedMemory + address, 16); }
inline int32_t loadShared4(uint32_t address) {
  int32_t word;
  std::memcpy(&word, ::sharedMemory + address, 4);
  return word;
}
inline void storeShared4(uint32_t address, int32_t word) { std::memcpy(::sharedMemory + address, &word, 4); }
inline void storeShared8(uint32_t address, int32_t a, int32_t b) {
  const int32_t words[] = {a, b};
  std::memcpy(::sharedMemory + address, words, 8);
}
inline void storeShared16(uint32_t address, int32_t a, int32_t b, int32_t c, int32_t d) {
  const int32_t words[] = {a, b, c, d};
  std::memcpy(::sharedMemory + address, words, 16);
}
inline void orShared(uint32_t address, uint32_t bits) { storeShared4(address, loadShared4(address) | int32_t(bits)); }

inline void loadGlobal16(const void *global, float (&values)[4]) { std::memcpy(values, global, 16); }
inline void loadConstant16(const void *global, float (&values)[4]) { loadGlobal16(global, values); }
inline void loadGlobal8(const float *global, bool isPresent, float (&values)[2]) {
  for (int e = 0; e < 2; ++e)
    values[e] = isPresent ? global[e] : 0;
}
inline int32_t loadGlobal4(const int32_t *global, bool isPresent) { return isPresent ? *global : 0; }

inline void fenceGlobal() {}
// Blocks run one after the other, so what a thread asks for again and again no other block will write.
inline uint32_t loadAcquire4(const uint32_t *word) {
  constexpr int kPatience = 50000;
  static const uint32_t *asked = nullptr;
  static int times = 0;
  times = word == asked ? times + 1 : 0;
  asked = word;
  if (times == kPatience) {
    std::fprintf(stderr, "block %u waits for a block that has not started\n", host_gpu::blockIndex().x);
    std::abort();
  }
  host_gpu::letOthersRun(); // of the same block
  return *word;
}
inline void storeCoherent4(uint32_t *word, uint32_t value) { *word = value; }
inline void loadCoherent8(const uint32_t *pair, uint32_t (&words)[2]) { std::memcpy(words, pair, 8); }
inline void storeCoherent8(uint32_t *pair, uint32_t low, uint32_t high) { pair[0] = low, pair[1] = high; }
template <int N> void loadCoherent(const void *global, bool isPresent, float (&values)[N]) {
  for (int e = 0; e < N; ++e)
    values[e] = isPresent ? static_cast<const float *>(global)[e] : 0;
}
inline void loadCoherent8(const void *global, bool isPresent, float (&values)[2]) {
  loadCoherent(global, isPresent, values);
}
inline void loadCoherent16(const void *global, bool isPresent, float (&values)[4]) {
  loadCoherent(global, isPresent, values);
}
inline uint32_t swapGlobal(uint32_t *word, uint32_t expected, uint32_t value) {
  const uint32_t before = *word;
  *word = before == expected ? value : before;
  return before;
}

inline uint32_t addGlobal(uint32_t *counter, uint32_t value) {
  const uint32_t before = *counter;
  *counter += value;
  return before;
}

inline uint32_t addGlobalInOrder(uint32_t *counter, uint32_t value) { return addGlobal(counter, value); }
inline uint32_t addGlobalIf(uint32_t *counter, uint32_t value, bool isPresent) {
  return isPresent ? addGlobal(counter, value) : 0;
}

inline void addGlobal4(float *to, bool isPresent, float a) {
  if (isPresent)
    *to += a;
}

template <int N> void storeGlobal(void *global, bool isPresent, const uint32_t (&words)[N]) {
  if (isPresent)
    std::memcpy(global, words, sizeof words);
}
inline void storeCoherent8(void *global, bool isPresent, uint32_t a, uint32_t b) {
  storeGlobal(global, isPresent, {a, b});
}
inline void storeCoherent16(void *global, bool isPresent, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  storeGlobal(global, isPresent, {a, b, c, d});
}
inline void storeGlobal4(void *global, bool isPresent, uint32_t a) { storeGlobal(global, isPresent, {a}); }
inline void storeGlobal8(void *global, bool isPresent, uint32_t a, uint32_t b) {
  storeGlobal(global, isPresent, {a, b});
}
inline void storeGlobal16(void *global, bool isPresent, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  storeGlobal(global, isPresent, {a, b, c, d});
}
inline void storeGlobal16(void *global, bool isPresent, float a, float b, float c, float d) {
  const float values[] = {a, b, c, d};
  if (isPresent)
    std::memcpy(global, values, sizeof values);
}

} // namespace ptx
} // namespace heddle
