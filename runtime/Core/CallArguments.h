// Owns how heddle_attention_args is read, whoever calls: which version of the struct the caller has, its fields by role,
// and what no call may set.
#pragma once

#include "runtime/Core/Kinds.h"
#include "runtime/Include/heddle.h"

#include <functional>

namespace heddle {

bool isEmpty(const heddle_tensor &tensor);

// Of a role that is a tensor.
const heddle_tensor &tensorOf(const heddle_attention_args &args, Role role);
// The address that the caller gave for a role; null where there is none.
const void *addressOf(const heddle_attention_args &args, Role role);

// The fields that the caller's version of the struct has; fails if one is set that nothing serves yet.
Status readArguments(const heddle_attention_args &args, heddle_attention_args &known);

// unsupported if there are tensors or arrays that calls of the kind do not have.
Status checkForeign(const Kind &kind, const heddle_attention_args &args);

// Sets the fields that are sizes of calls of the kind.
void giveSizes(const Kind &kind, const std::function<int64_t(RoleExtent)> &sizeIn, heddle_attention_args &args);

// "attention arguments: ...", invalidArgument.
Status badArguments(const std::string &what);

} // namespace heddle
