/* NVRTC with a count of its compilations: every entry point leads to that of the library named by HEDDLE_REAL_NVRTC. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compilations;
int counting_nvrtc_compilations(void) { return compilations; }

/* NVRTC looks for this companion by its bare name. */
static void loadCompanion(const char *library) {
  char pattern[4096];
  const char *slash = strrchr(library, '/');
  snprintf(pattern, sizeof pattern, "%.*s/libnvrtc-builtins.so.*", slash ? (int)(slash - library) : 1, slash ? library : ".");
  glob_t found;
  if (glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0)
    dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
  globfree(&found);
}

static void *real(const char *name) {
  static void *library;
  if (!library) {
    library = dlopen(getenv("HEDDLE_REAL_NVRTC"), RTLD_NOW);
    loadCompanion(getenv("HEDDLE_REAL_NVRTC"));
  }
  return dlsym(library, name);
}

#define FORWARD(result, name, parameters, arguments)                                                                                \
  result name parameters { return ((result(*) parameters)real(#name))arguments; }
FORWARD(const char *, nvrtcGetErrorString, (int code), (code))
FORWARD(int, nvrtcVersion, (int *major, int *minor), (major, minor))
FORWARD(int, nvrtcGetNumSupportedArchs, (int *count), (count))
FORWARD(int, nvrtcGetSupportedArchs, (int *archs), (archs))
FORWARD(int, nvrtcCreateProgram,
        (void **program, const char *text, const char *name, int count, const char *const *headers, const char *const *names),
        (program, text, name, count, headers, names))
FORWARD(int, nvrtcDestroyProgram, (void **program), (program))
FORWARD(int, nvrtcGetPTXSize, (void *program, size_t *bytes), (program, bytes))
FORWARD(int, nvrtcGetPTX, (void *program, char *text), (program, text))
FORWARD(int, nvrtcGetCUBINSize, (void *program, size_t *bytes), (program, bytes))
FORWARD(int, nvrtcGetCUBIN, (void *program, char *code), (program, code))
FORWARD(int, nvrtcGetProgramLogSize, (void *program, size_t *bytes), (program, bytes))
FORWARD(int, nvrtcGetProgramLog, (void *program, char *text), (program, text))

int nvrtcCompileProgram(void *program, int count, const char *const *options) {
  __atomic_add_fetch(&compilations, 1, __ATOMIC_RELAXED);
  return ((int (*)(void *, int, const char *const *))real("nvrtcCompileProgram"))(program, count, options);
}
