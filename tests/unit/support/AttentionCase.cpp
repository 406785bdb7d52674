//===- AttentionCase.cpp - one CPU attention call with its oracle -----------===//
#include "support/AttentionCase.h"
#include <algorithm>
#include <random>

namespace heddle::test {

CaseTensor::CaseTensor(DType dtype, int batch, int rows, int heads, int dim, int padding)
    : dtype(dtype), batch(batch), rows(rows), heads(heads), dim(dim), padding(padding),
      bytes(size_t(batch) * rows * heads * (dim + padding) * dtypeBytes(dtype) + 1) {
  float nan = std::nanf("");
  for (int64_t at = 0; at < int64_t(batch) * rows * heads * (dim + padding); ++at)
    storeElements(dtype, &nan, 1, bytes.data(), at);
}

CpuStrides CaseTensor::strides() const {
  const int64_t head = dim + padding, row = head * heads;
  return {row * rows, row, head};
}

int64_t CaseTensor::offset(int b, int row, int head, int d) const {
  return ((int64_t(b) * rows + row) * heads + head) * (dim + padding) + d;
}

double CaseTensor::get(int b, int row, int head, int d) const {
  float value;
  loadElements(dtype, bytes.data(), offset(b, row, head, d), 1, &value);
  return value;
}

void CaseTensor::set(int b, int row, int head, int d, double value) {
  float rounded = float(value);
  storeElements(dtype, &rounded, 1, bytes.data(), offset(b, row, head, d));
}

std::vector<double> CaseTensor::dense() const {
  std::vector<double> values;
  for (int b = 0; b < batch; ++b)
    for (int row = 0; row < rows; ++row)
      for (int head = 0; head < heads; ++head)
        for (int d = 0; d < dim; ++d)
          values.push_back(get(b, row, head, d));
  return values;
}

bool CaseTensor::paddingIsUntouched() const {
  for (int b = 0; b < batch; ++b)
    for (int row = 0; row < rows; ++row)
      for (int head = 0; head < heads; ++head)
        for (int d = dim; d < dim + padding; ++d)
          if (!std::isnan(get(b, row, head, d)))
            return false;
  return true;
}

static void fillRandom(CaseTensor &tensor, int batch, int rows, int heads, int dim, std::mt19937 &random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (int b = 0; b < batch; ++b)
    for (int row = 0; row < rows; ++row)
      for (int head = 0; head < heads; ++head)
        for (int d = 0; d < dim; ++d)
          tensor.set(b, row, head, d, uniform(random));
}

AttentionCase::AttentionCase(const CaseShape &s, unsigned seed)
    : shape(s), q(s.dtype, s.batch, s.seqlenQ, s.heads, s.headDim, s.padding),
      k(s.dtype, s.batch, s.seqlenK, s.kvHeads, s.headDim, s.padding),
      v(s.dtype, s.batch, s.seqlenK, s.kvHeads, s.valueDim, s.padding),
      out(s.dtype, s.batch, s.seqlenQ, s.heads, s.valueDim, s.padding),
      lse(size_t(s.batch) * s.heads * s.seqlenQ, std::nanf("")), scale(2.0 / std::sqrt(double(s.headDim))) {
  std::mt19937 random(seed);
  fillRandom(q, s.batch, s.seqlenQ, s.heads, s.headDim, random);
  fillRandom(k, s.batch, s.seqlenK, s.kvHeads, s.headDim, random);
  fillRandom(v, s.batch, s.seqlenK, s.kvHeads, s.valueDim, random);
}

void AttentionCase::fillValues(double value) {
  for (int b = 0; b < shape.batch; ++b)
    for (int row = 0; row < shape.seqlenK; ++row)
      for (int head = 0; head < shape.kvHeads; ++head)
        for (int d = 0; d < shape.valueDim; ++d)
          v.set(b, row, head, d, value);
}

CpuCall AttentionCase::args() {
  CpuCall a;
  a.elements = CallElements(shape.dtype);
  a.give(Role::q, q.data(), q.strides());
  a.give(Role::k, k.data(), k.strides());
  a.give(Role::v, v.data(), v.strides());
  a.give(Role::out, out.data(), out.strides());
  a.give(Role::lse, lse.data());
  a.batch = shape.batch;
  a.heads = shape.heads;
  a.kvHeads = shape.kvHeads;
  a.seqlenQ = shape.seqlenQ;
  a.seqlenK = shape.seqlenK;
  a.headDim = shape.headDim;
  a.valueDim = shape.valueDim;
  a.qOrigin = shape.qOrigin;
  a.kOrigin = shape.kOrigin;
  a.scale = float(scale);
  return a;
}

OracleProblem AttentionCase::problem() const {
  OracleProblem p;
  p.batch = shape.batch;
  p.heads = shape.heads;
  p.kvHeads = shape.kvHeads;
  p.seqlenQ = shape.seqlenQ;
  p.seqlenK = shape.seqlenK;
  p.headDim = shape.headDim;
  p.valueDim = shape.valueDim;
  p.scale = float(scale);
  p.q = q.dense();
  p.k = k.dense();
  p.v = v.dense();
  return p;
}

// Equal infinities differ by 0, a NaN from anything by infinity.
static double difference(double got, double expected) {
  if (got == expected)
    return 0;
  double error = std::abs(got - expected);
  return std::isnan(error) ? INFINITY : error;
}

static double allowedError(DType dtype, double value) {
  double unit = dtype == DType::bf16 ? 0x1p-8 : dtype == DType::fp16 ? 0x1p-11 : 0;
  return unit * std::abs(value) + 2e-5;
}

AttentionCase::Errors AttentionCase::compare(const HandPattern &pattern) const {
  OracleProblem p = problem();
  p.branches = pattern.branchCount();
  JitContext context;
  context.heads = shape.heads;
  context.seqlenQ = shape.seqlenQ;
  context.seqlenK = shape.seqlenK;
  context.qOrigin = shape.qOrigin;
  context.kOrigin = shape.kOrigin;
  std::copy(pattern.params.begin(), pattern.params.end(), context.params.begin());
  p.sink = pattern.sink;
  if (pattern.scores)
    p.changes = [&](int batch, int head, int i, int j, double score) {
      context.batch = batch;
      context.head = head;
      return pattern.scores(context, shape.qOrigin + i, shape.kOrigin + j, score);
    };
  OracleAnswer answer = attentionOracle(p, [&](int batch, int head, int branch, int i, int j) {
    context.batch = batch;
    context.head = head;
    return pattern.keeps(context, branch, shape.qOrigin + i, shape.kOrigin + j);
  });
  Errors errors;
  std::vector<double> got = out.dense();
  for (size_t at = 0; at < got.size(); ++at)
    errors.out = std::max(errors.out, difference(got[at], answer.out[at]) / allowedError(shape.dtype, answer.out[at]));
  for (size_t at = 0; at < lse.size(); ++at)
    errors.lse = std::max(errors.lse, difference(lse[at], answer.lse[at]));
  errors.paddingIsUntouched = out.paddingIsUntouched();
  return errors;
}

} // namespace heddle::test
