// On the host: copies happen when they are waited for.
#pragma once

namespace heddle {
namespace ptx {

inline void copyAsync16OrZero(uint32_t shared, const void *global, bool isPresent) {
  host_gpu::self().open.push_back([=] {
    if (isPresent)
      std::memcpy(::sharedMemory + shared, global, 16);
    else
      std::memset(::sharedMemory + shared, 0, 16);
  });
}
template <int Offset> void copyAsync16OfLineOrZero(uint32_t shared, const void *global, bool isPresent) {
  copyAsync16OrZero(shared, static_cast<const char *>(global) + Offset, isPresent);
}
template <int Offset> void copyAsync16OfPassingLineOrZero(uint32_t shared, const void *global, bool isPresent) {
  copyAsync16OfLineOrZero<Offset>(shared, global, isPresent);
}
inline void copyAsync16(uint32_t shared, const void *global) { copyAsync16OrZero(shared, global, true); }

inline void commitCopies() {
  host_gpu::self().committed.push_back(std::move(host_gpu::self().open));
  host_gpu::self().open.clear();
}

template <int Pending> void waitCopies() {
  auto &groups = host_gpu::self().committed;
  for (; groups.size() > Pending; groups.pop_front())
    for (const auto &copy : groups.front())
      copy();
}

} // namespace ptx
} // namespace heddle
