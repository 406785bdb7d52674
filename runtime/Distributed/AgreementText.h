//===- AgreementText.h - what the ranks of a call compare -------*- C++ -*-===//
// Owns which things of a call must be the same on every rank, in the words of people who are told where they differ.
//===----------------------------------------------------------------------===//
#pragma once

#include <string>

namespace heddle {

struct GroupRequest;

// For agree(). The version comes first, as another one may have other lines; operands have the numbers of the pattern.
std::string agreementOf(const GroupRequest &request);

} // namespace heddle
