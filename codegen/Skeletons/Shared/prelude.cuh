// First text of every generated CUDA source: the few names that NVRTC does not know and the standard
// headers would give. Also compiles under nvcc, where the standard header supplies the integer types.
// DEV carries no storage class: members of a struct say `DEV static`, free functions are inline.
#pragma once

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <cstdint>
#endif

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

// The type of q, k and v is one of these: KernelTraits::Element (elements.cuh).
namespace heddle {
struct Bf16;
struct Fp16;
} // namespace heddle

#ifndef DEV
#define DEV __device__ __forceinline__
#endif
