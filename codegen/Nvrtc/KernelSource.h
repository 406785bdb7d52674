// One complete kernel as text: the translation unit, the headers it includes (in memory) and the
// options beyond the fixed ones. Two equal sources give the same binary for the same architecture
// and NVRTC version; contentKey() in Compiler.h is built on that.
#pragma once

#include <string>
#include <vector>

namespace heddle {

/// A header in memory; `name` is what `#include` says.
struct SourceHeader {
  std::string name;
  std::string text;
};

struct KernelSource {
  std::string name = "heddle_kernel.cu"; ///< file name in diagnostics
  std::string text;
  std::vector<SourceHeader> headers;
  std::vector<std::string> options; ///< after the fixed options of Compiler.h
};

} // namespace heddle
