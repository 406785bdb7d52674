//===- CallShape.h - what is fixed of a call beside its pattern --------------===//
// Owns the value that a call, the kernel that is asked for, its request, its record and its measurement have in common:
// kind, element types and head dims; and the text of the first two, which kernels are filed under and asked for by.
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/Core/DType.h"
#include "runtime/Core/Kinds.h"

namespace heddle {

// Which of these a kernel can mix, it says itself.
struct CallElements {
  DType q = kDefaultDType, k = kDefaultDType, v = kDefaultDType, out = kDefaultDType;

  CallElements() = default;
  explicit CallElements(DType all) : CallElements(all, all) {}
  CallElements(DType inputs, DType out) : q(inputs), k(inputs), v(inputs), out(out) {}

  DType of(RoleElement element) const {
    const DType elements[] = {q, k, v, out, kAccumulator, DType::i32};
    return elements[int(element)];
  }
};

struct CallShape {
  Kind kind = {};
  CallElements elements = {};
  int64_t headDim = 64, valueDim = 64;
};

// "backward_of_0_3_fp32_out": the text of a kind, and whether out is fp32 instead of the type of q, which a further
// launch continues from.
struct KindText {
  Kind kind = {};
  bool outFloat32 = false;

  std::string str() const;
  // unsupported, as of Kind::parse.
  static Result<KindText> parse(std::string_view text);
};

} // namespace heddle
