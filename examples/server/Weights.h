//===- Weights.h - tensors of a safetensors file ----------------------------===//
// Reads what examples/python/safetensors_file.py writes: F32 tensors by name, and a table of texts.
//===----------------------------------------------------------------------===//
#pragma once

#include <heddle/heddle.hpp>

#include <map>
#include <string>
#include <vector>

namespace server {

namespace api = heddle::api;

struct Weight {
  std::vector<int64_t> shape;
  std::vector<float> values; // row-major
};

struct Weights {
  std::map<std::string, Weight> tensors;
  std::map<std::string, std::string> metadata;

  // IO: the file cannot be read. CORRUPT: it is no such file, with what is wrong in it.
  static api::Result<Weights> read(const std::string &path);
  // The tensor, which must have these sizes; 0 stands for any.
  api::Result<const Weight *> find(const std::string &name, const std::vector<int64_t> &shape) const;
  // A whole number of the table.
  api::Result<int64_t> number(const std::string &name) const;
};

} // namespace server
