// The question: everything that is fixed before a configuration is chosen. The answer is a
// KernelConfig. Plain data; made from an analysed pattern, never from run-time sizes.
#pragma once

#include "codegen/Config/PatternRates.h"
#include "runtime/Core/CallShape.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct GpuArch;
const GpuArch &baselineGpuArch();

struct KernelRequest : PatternRates, CallShape {
  const GpuArch *arch = &baselineGpuArch(); ///< never null
  bool isPass = false;                      ///< one of several kernels of a call, which go through the rows in rounds

  /// The element of q, and of k and v where checkTypes() has found them alike.
  const ElementTraits &element() const { return traitsOf(elements.q); }
  /// What its products are of: q's, but of fp16 where k and v are e4m3 beside it, which has all their digits.
  const ElementTraits &productElement() const { return elements.hasScaledKeys() ? traitsOf(DType::fp16) : element(); }
  /// Products of floats with all their digits.
  bool isExact() const { return !element().isPacked() && elements.precision == Precision::exact; }
  /// unsupported: types that are not among those served, or have no such products, and other ones for k and v than for q,
  /// unless these are CallElements::hasScaledKeys() and the kernel takes that.
  Status checkTypes(ElementSet served = &ElementTraits::isPacked, bool takesScaledKeys = false) const;

  /// Each sequence of a call says where its part stands, and what the words of `wholes` are.
  bool hasPartsOfSequences() const { return !wholes.empty() && kind.hasPartsOfSequences(); }

  /// Those of kind.gradientsOf, which validate() has found among the pattern's.
  std::vector<GradientSlot> wantedGradients() const;

  /// What the kernel of pass `index` is asked: all but the last write what the next one continues from, in fp32.
  KernelRequest passRequest(size_t index) const;

  /// Every tile of `rows` x `columns` pairs is kept or dropped as a whole, if key 0 stands at a multiple of
  /// keyOriginStep().
  bool keepsWholeTiles(int64_t rows, int64_t columns) const { return liesIn(grain, rows, columns); }
  /// Likewise, or what a tile keeps is what lies in the band.
  bool keepsTilesInBand(int64_t rows, int64_t columns) const {
    return keepsWholeTiles(rows, columns) || liesIn(bandedGrain, rows, columns);
  }
  /// KernelTraits::kTilesAreWhole: 1 if tiles are whole, 2 if they are but for the band, else 0.
  int64_t tilesAreWhole(int64_t rows, int64_t columns) const {
    return keepsWholeTiles(rows, columns) ? 1 : keepsTilesInBand(rows, columns) ? 2 : 0;
  }

  /// One line for people and comments: "forward bf16 head_dim=128 value_dim=128 ...".
  std::string str() const;
  /// invalidArgument with what is wrong: no variant, a rate or dimension below 1, variants with
  /// different numbers of branches, a negative paramCount, a single pass.
  Status validate() const;

private:
  bool liesIn(int64_t squares, int64_t rows, int64_t columns) const {
    return qOrigin == QOriginRule::start && squares % rows == 0 && squares % columns == 0;
  }
};

} // namespace heddle
