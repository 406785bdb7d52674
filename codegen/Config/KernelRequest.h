//===- KernelRequest.h - what a kernel is asked to do ---------------------------===//
//
// The question: everything that is fixed before a configuration is chosen. The answer is a
// KernelConfig. Plain data; made from an analysed pattern, never from run-time sizes.
//
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_CODEGEN_CONFIG_KERNELREQUEST_H
#define HEDDLE_CODEGEN_CONFIG_KERNELREQUEST_H

#include "codegen/Target/GpuArch.h"
#include "runtime/Core/DType.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

enum class KernelKind : uint8_t { forward };

/// "forward"; the inverse gives notFound with the names that exist.
const char *kernelKindName(KernelKind kind);
Result<KernelKind> parseKernelKind(std::string_view name);

/// Position of query 0: 0, seqlen_k - seqlen_q, or what each call says.
enum class QOriginRule : uint8_t { start, end, given };

/// "start", "end" or "given"; the inverse gives notFound with the names that exist.
const char *qOriginRuleName(QOriginRule rule);
Result<QOriginRule> parseQOriginRule(std::string_view name);

/// The strides of one head group: rows are processed in `queryRate` residue classes, the keys of
/// branch b in `keyRates[b]` of them.
struct VariantRates {
  int64_t queryRate = 1;
  std::vector<int64_t> keyRates = {1};
};

struct KernelRequest {
  KernelKind kind = KernelKind::forward;
  const GpuArch *arch = &baselineGpuArch(); ///< never null
  DType dtype = DType::bf16;
  bool outFloat32 = false; ///< out is fp32 instead of dtype
  int64_t headDim = 64;
  int64_t valueDim = 64;
  std::vector<VariantRates> variants = {VariantRates()};
  int64_t paramCount = 0; ///< run-time sizes of the pattern
  QOriginRule qOrigin = QOriginRule::start;

  /// Key rates per variant; the same for all variants.
  int64_t branchCount() const { return variants.empty() ? 0 : static_cast<int64_t>(variants.front().keyRates.size()); }

  /// One line for people and comments: "forward bf16 head_dim=128 value_dim=128 ...".
  std::string str() const;
  /// invalidArgument with what is wrong: no variant, a rate or dimension below 1, variants with
  /// different numbers of branches, a negative paramCount.
  Status validate() const;
};

} // namespace heddle

#endif // HEDDLE_CODEGEN_CONFIG_KERNELREQUEST_H
