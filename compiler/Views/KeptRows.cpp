#include "compiler/Views/KeptRows.h"
#include "codegen/Cpu/JitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "compiler/Session/CompileForCpu.h"
#include "compiler/Pattern/ProblemKey.h"
#include "dialect/Geometry/TileVisitor.h"

#include <algorithm>

namespace heddle::views {

struct KeptRows::Compiled {
  Compiled(std::shared_ptr<const JitPattern> code, const PatternFile &file, const attn::ProblemSizes &sizes,
           Operands operands);
  /// What pieces say of the head, where they say all of it; else the head itself, if the predicate asks for it.
  std::vector<int64_t> headValues(int64_t head) const;

  std::shared_ptr<const JitPattern> code;
  JitContext context;
  Operands operands; ///< what the context points to
  std::vector<uint8_t> keeps;
  int64_t rowsRead = 0;
  const attn::PatternAnalysis &analysis;
  attn::ProblemSizes sizes;
  attn::HeadVisitors visitors;
};

KeptRows::KeptRows(std::unique_ptr<Compiled> compiled) : compiled(std::move(compiled)) {}
KeptRows::KeptRows(KeptRows &&) noexcept = default;
KeptRows::~KeptRows() = default;

Result<KeptRows> KeptRows::create(const PatternFile &file, const attn::ProblemSizes &sizes, const Operands &operands) {
  HEDDLE_ASSIGN(std::shared_ptr<const JitPattern> code, compileForCpu(file));
  HEDDLE_TRY(checkMaskTensors(file, sizes));
  return KeptRows(std::make_unique<Compiled>(std::move(code), file, sizes, operands));
}

KeptRows::Compiled::Compiled(std::shared_ptr<const JitPattern> compiled, const PatternFile &file,
                             const attn::ProblemSizes &given, Operands tensors)
    : code(std::move(compiled)), operands(std::move(tensors)), keeps(given.seqlenK), analysis(file.analysis()),
      sizes(given), visitors(analysis, attn::Direction::Forward, this->sizes) {
  context.heads = static_cast<int32_t>(sizes.heads);
  context.seqlenQ = static_cast<int32_t>(sizes.seqlenQ);
  context.seqlenK = static_cast<int32_t>(sizes.seqlenK);
  context.qOrigin = static_cast<int32_t>(sizes.qOrigin);
  context.kOrigin = static_cast<int32_t>(sizes.kOrigin);
  std::copy(sizes.parameters.begin(), sizes.parameters.end(), context.params.begin());
  const std::vector<PatternOperand> &places = code->info().operands;
  for (size_t i = 0; i < places.size(); ++i)
    if (size_t argument = size_t(places[i].argument); argument < operands.size() && operands[argument])
      context.operands[i] = operands[argument].address();
}

std::vector<int64_t> KeptRows::Compiled::headValues(int64_t head) const {
  if (!code->info().keepsByHead)
    return {};
  if (!analysis.isStructural())
    return {head};
  return visitors.headValues(head);
}

std::vector<int64_t> KeptRows::headValues(int64_t head) const { return compiled->headValues(head); }

int64_t KeptRows::rowsRead() const { return compiled->rowsRead; }

void KeptRows::read(int64_t head, int64_t row, std::vector<uint16_t> &copies) {
  auto &[code, context, operands, keeps, rowsRead, analysis, sizes, visitors] = *compiled;
  ++rowsRead;
  context.head = static_cast<int32_t>(head);
  copies.assign(keeps.size(), 0);
  for (int32_t branch = 0; branch < code->info().branchCount; ++branch) {
    const int32_t position = context.qOrigin + static_cast<int32_t>(row);
    code->keepRow(context, {branch, position, context.kOrigin, 1, context.seqlenK}, keeps.data());
    for (size_t j = 0; j < keeps.size(); ++j)
      copies[j] += keeps[j];
  }
}

void KeptRows::changeScores(int64_t head, int64_t row, std::vector<double> &scores) {
  auto &[code, context, operands, keeps, rowsRead, analysis, sizes, visitors] = *compiled;
  if (!code->info().hasScore)
    return;
  context.head = static_cast<int32_t>(head);
  const int32_t q = context.qOrigin + static_cast<int32_t>(row);
  for (size_t j = 0; j < scores.size(); ++j)
    scores[j] = code->score(context, q, context.kOrigin + static_cast<int32_t>(j), static_cast<float>(scores[j]));
}

} // namespace heddle::views
