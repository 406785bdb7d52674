#include "support/Places.h"

namespace heddle::test {

const Places &places() {
  static const std::string source = HEDDLE_SOURCE_DIR;
  static const Places found{source,
                            source + "/patterns",
                            source + "/tests/data",
                            source + "/tests/data/arguments",
                            source + "/codegen/Skeletons",
                            source + "/tests/unit/host_gpu",
                            HEDDLE_HOST_FOLDER,
                            HEDDLE_HOST_COMPILE,
                            HEDDLE_HOST_LINK,
                            HEDDLE_PROGRAM,
                            HEDDLE_HOST_PACKAGE,
                            HEDDLE_FAKE_CUDA,
                            HEDDLE_FAKE_NCCL,
                            HEDDLE_FAKE_OLD_NCCL,
                            HEDDLE_FAKE_NVML,
                            HEDDLE_KEPT_NVRTC,
                            HEDDLE_COUNTING_NVRTC};
  return found;
}

} // namespace heddle::test
