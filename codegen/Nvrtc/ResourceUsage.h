// Reads the resources of a compiled kernel from two independent places: what ptxas printed
// (--ptxas-options=-v; the only source of spill counts) and the attributes in the cubin. compile()
// in Compiler.h compares them.
#pragma once

#include "runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Per thread, except shared memory (per block) and barriers (per block).
struct ResourceUsage {
  int64_t registers = 0;
  int64_t stackFrameBytes = 0;
  int64_t spillStoreBytes = 0;
  int64_t spillLoadBytes = 0;
  int64_t staticSharedBytes = 0;
  int64_t barriers = 0;
};

/// What ptxas printed about `entry`. Spills and stack frames of functions that were not inlined
/// are added to the entry's own. No such entry in the log: notFound.
Result<ResourceUsage> parsePtxasLog(std::string_view log, std::string_view entry);

/// Bytes that an entry function spills, stores and loads together.
struct EntrySpills {
  std::string entry;
  int64_t bytes = 0;
};

/// Of the entry functions in the log those that spill, in its order; functions that were not inlined as above.
std::vector<EntrySpills> parseSpills(std::string_view log);

/// A remark of ptxas on how it treats warpgroup products and registers, C7500 to C7599.
struct CompilerNote {
  std::string code;    ///< "C7512"
  std::string text;    ///< what follows the code
  bool isLoss = false; ///< ptxas calls it a potential performance loss

  bool operator==(const CompilerNote &other) const { return code == other.code && text == other.text; }
};

/// The different remarks in the log, in its order.
std::vector<CompilerNote> parseNotes(std::string_view log);

/// Instructions of the text that multiply with a whole warpgroup.
int64_t countWarpgroupProducts(std::string_view ptx);

/// Milliseconds that ptxas says it took, 0 if the log does not say.
double ptxasMilliseconds(std::string_view log);

/// The log without the lines that differ from run to run.
std::string withoutTimes(std::string_view log);

/// Registers and stack frame of `entry` as the cubin's attributes state them; the other fields are
/// 0. Not a readable 64-bit ELF file: corrupt. No such entry: notFound.
Result<ResourceUsage> readCubinUsage(std::string_view cubin, std::string_view entry);

} // namespace heddle
