//===- Kernels.h - what ranks launch ------------------------------------------------===//
// Owns where the kernels of a rank come from: the compiler, for the GPU at hand; or, over the recording driver, records whose
// launches this process runs itself, by the definition.
#ifndef HEDDLE_TESTS_RANKS_KERNELS_H
#define HEDDLE_TESTS_RANKS_KERNELS_H

#include "Scene.h"

#include <mutex>

namespace heddle::ranks {

// Whether the driver of this process is the recording one.
bool isStandIn();

// What a group's calls are asked for by, and the kinds of their kernels: of forward calls, and of gradients with the same bits in every run; of parts, which are added up, as group calls take
// them, or of the whole.
std::string callKindOf(const SceneSpec &spec, bool isBackward);
std::vector<std::string> kindsOf(const SceneSpec &spec, bool isBackward, bool isOfPart);
// Alike for scenes whose calls launch the same kernels.
std::string kernelsOf(const SceneSpec &spec);

class Kernels {
public:
  // A database in `folder`: what is compiled is there for later programs too, records are of this one. Before ranks are started.
  explicit Kernels(std::string folder);
  // For a scene that is used later; in the process that starts the ranks. Not `isComputed`: its calls are refused.
  Status prepare(const Scene &scene, bool isComputed = true);

  // In a rank: connects the driver, and what kernels come from.
  Status open(heddle_device *device);
  // Threads may ask together.
  Result<const heddle_kernel *> find(const Scene &scene, bool isOfPart, const std::string &kind);
  // Whether what is asked for is compiled, and threads are worth it.
  bool areCompiled() const { return compiler != nullptr; }

private:
  Result<heddle_kernel *> compiled(const Scene &scene, heddle_pattern *pattern, bool isOfPart, const std::string &kind);

  std::string path;
  heddle_device *device = nullptr;
  heddle_store *store = nullptr;       // over the recording driver
  heddle_compiler *compiler = nullptr; // else
  std::mutex finding;                  // guards found
  std::map<std::string, heddle_kernel *> found;
};

} // namespace heddle::ranks

#endif
