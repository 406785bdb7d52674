#include "compiler/Measure/MeasureProcess.h"
#include "compiler/Tools/Verb.h"

namespace heddle::cli {

const std::vector<Verb> &verbs() {
  static const std::vector<Verb> list = {
      {"check", "parse and verify patterns, say what kernels make of them", addCheck},
      {"explain", "count pairs, tiles, FLOPs and bytes for given sizes", addExplain},
      {"show", "draw which tiles are full, partial and skipped", addShow},
      {"diff", "count and draw the pairs that only one of two patterns keeps", addDiff},
      {"ring", "plan attention over ranks that share a sequence", addRing},
      {"cost", "plan the training of a model: layouts, time, memory, money", addCost},
      {"compile", "turn a pattern into CUDA text, PTX, a cubin or a record", addCompile},
      {"configs", "list the feasible configurations of a kernel, all or a random sample", addConfigs},
      {"tune", "find the fastest kernel on this machine's GPU", addTune},
      {"sweep", "tune every problem of a plan, on one machine or many", addSweep},
      {"run", "compute attention on tensors from a file", addRun},
      {"bench", "measure kernels beside the roof of the same run", addBench},
      {"pack", "compile every kernel of a plan into one file to ship", addPack},
      {"cache", "look into, tidy, compare and pass on kernel databases", addCache},
      {"report", "write what databases say as one page: winners, trials, roofs, differences", addReport},
      /* make_inputs.cpp */ {"make-inputs", "write random q, k, v to a tensor file", addMakeInputs},
      {"quantize", "write the q, k, v of a tensor file as e4m3, with their scales", addQuantize},
      {"help", "explain a verb, the environment, or list the patterns of the library", addHelp},
      {"completion", "print a script that completes this command line in a shell", addCompletion},
      {"man", "print the manual page", addMan},
      /* measure_candidates.cpp */
      {kMeasureVerb, "measure what a search asks for, over a socket", addMeasureCandidates, true},
  };
  return list;
}

} // namespace heddle::cli
