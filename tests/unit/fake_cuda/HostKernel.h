//===- HostKernel.h - kernels that the recording driver can run -------------===//
// Owns the convention: an image that is a shared library of this machine, in place of a cubin, exports
//   void heddle_kernel(const void *params, const unsigned grid[3])
// and does the whole work of a launch in host memory, which is what device memory is here. Launches are done when they
// return: all streams are in order.
#ifndef HEDDLE_TESTS_UNIT_FAKE_CUDA_HOSTKERNEL_H
#define HEDDLE_TESTS_UNIT_FAKE_CUDA_HOSTKERNEL_H

namespace heddle::fake {

using HostKernel = void (*)(const void *params, const unsigned *grid);

// Null if the image is no library of this machine, as those are that tests make up. Called with the driver's lock held;
// libraries stay open, one for all modules of equal images.
HostKernel openHostKernel(const void *image, const char *entry);

} // namespace heddle::fake

#endif
