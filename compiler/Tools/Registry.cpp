//===- Registry.cpp - the list of verbs -----------------------------------===//
#include "compiler/Tools/Verb.h"

namespace heddle::cli {

const std::vector<Verb> &verbs() {
  static const std::vector<Verb> list = {
#ifdef HEDDLE_VERB_CHECK
      {"check", "parse and verify patterns, say what kernels make of them", addCheck},
#endif
#ifdef HEDDLE_VERB_EXPLAIN
      {"explain", "count pairs, tiles, FLOPs and bytes for given sizes", addExplain},
#endif
#ifdef HEDDLE_VERB_SHOW
      {"show", "draw which tiles are full, partial and skipped", addShow},
#endif
#ifdef HEDDLE_VERB_COMPILE
      {"compile", "turn a pattern into CUDA text, PTX, a cubin or a record", addCompile},
#endif
#ifdef HEDDLE_VERB_TUNE
      {"tune", "find the fastest kernel on this machine's GPU", addTune},
#endif
#ifdef HEDDLE_VERB_RUN
      {"run", "compute attention on tensors from a file", addRun},
#endif
#ifdef HEDDLE_VERB_BENCH
      {"bench", "measure kernels beside the roof of the same run", addBench},
#endif
#ifdef HEDDLE_VERB_CACHE
      {"cache", "list, verify, prune and merge kernel databases", addCache},
#endif
#ifdef HEDDLE_VERB_MAKE_INPUTS
      {"make-inputs", "write random q, k, v to a tensor file", addMakeInputs},
#endif
  };
  return list;
}

} // namespace heddle::cli
