// First text of every generated CUDA source: the few names that NVRTC does not know and the standard
// headers would give.
// DEV carries no storage class: members of a struct say `DEV static`, free functions are inline.
#pragma once

#include "Shared/integers.cuh"

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

// The type of q, k and v is one of these, Element of the traits (elements.cuh).
namespace heddle {
struct Bf16;
struct Fp16;
struct Fp32;
struct Tf32;
struct FastE4m3;
struct FloatPair;
struct RaisedFloat;
struct E4m3;
} // namespace heddle

#ifndef DEV
#define DEV __device__ __forceinline__
#endif
