/* The few functions of the CUDA driver that the examples use, opened at run time like the runtime does it. A program
 * that has the CUDA toolkit includes cuda.h (or uses cudaMalloc) instead. */
#ifndef EXAMPLES_DRIVER_H
#define EXAMPLES_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>

typedef int driver_code; /* 0 is success */
typedef unsigned long long driver_pointer;

typedef struct driver {
  driver_code (*init)(unsigned flags);
  driver_code (*primary_context)(void **context, int device);
  driver_code (*push_context)(void *context);
  driver_code (*allocate)(driver_pointer *memory, size_t bytes);
  driver_code (*release)(driver_pointer memory);
  driver_code (*to_device)(driver_pointer to, const void *from, size_t bytes, void *stream);
  driver_code (*to_host)(void *to, driver_pointer from, size_t bytes, void *stream);
  driver_code (*create_stream)(void **stream, unsigned flags);
  driver_code (*synchronize)(void *stream);
  driver_code (*destroy_stream)(void *stream);
  driver_code (*create_event)(void **event, unsigned flags);
  driver_code (*record)(void *event, void *stream);
  driver_code (*elapsed)(float *milliseconds, void *begin, void *end);
  driver_code (*destroy_event)(void *event);
} driver;

/* Opens the library that the runtime opens; 0 if it is not there or lacks a function. */
static inline int driver_open(driver *cuda) {
  const struct {
    void **function;
    const char *symbol;
  } functions[] = {{(void **)&cuda->init, "cuInit"},
                   {(void **)&cuda->primary_context, "cuDevicePrimaryCtxRetain"},
                   {(void **)&cuda->push_context, "cuCtxPushCurrent_v2"},
                   {(void **)&cuda->allocate, "cuMemAlloc_v2"},
                   {(void **)&cuda->release, "cuMemFree_v2"},
                   {(void **)&cuda->to_device, "cuMemcpyHtoDAsync_v2"},
                   {(void **)&cuda->to_host, "cuMemcpyDtoHAsync_v2"},
                   {(void **)&cuda->create_stream, "cuStreamCreate"},
                   {(void **)&cuda->synchronize, "cuStreamSynchronize"},
                   {(void **)&cuda->destroy_stream, "cuStreamDestroy_v2"},
                   {(void **)&cuda->create_event, "cuEventCreate"},
                   {(void **)&cuda->record, "cuEventRecord"},
                   {(void **)&cuda->elapsed, "cuEventElapsedTime"},
                   {(void **)&cuda->destroy_event, "cuEventDestroy_v2"}};
  const char *named = getenv("HEDDLE_CUDA_DRIVER_LIBRARY");
  void *library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  size_t i;
  if (!library)
    return 0;
  for (i = 0; i < sizeof functions / sizeof *functions; ++i)
    if (!(*functions[i].function = dlsym(library, functions[i].symbol)))
      return 0;
  return cuda->init(0) == 0;
}

#endif
