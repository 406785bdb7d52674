//===- PreparePattern.cpp - the half of a compilation that needs MLIR -----===//
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Driver/CompileSession.h"
#include "compiler/Driver/PatternFile.h"
#include "compiler/Driver/PatternFunctions.h"
#include "compiler/Driver/PreparedPattern.h"
#include "compiler/Driver/TileBalance.h"
#include "dialect/Analysis/Grain.h"

namespace heddle {

static QOriginRule originRule(attn::Origin origin) {
  switch (origin) {
  case attn::Origin::start:
    return QOriginRule::start;
  case attn::Origin::end:
    return QOriginRule::end;
  case attn::Origin::given:
    return QOriginRule::given;
  }
  return QOriginRule::given;
}

static void takeSchedule(PreparedPattern &prepared, const AttentionSchedule &schedule) {
  prepared.name = schedule.name;
  prepared.qOrigin = originRule(schedule.qOrigin);
  prepared.hasScores = schedule.hasScore;
  for (const ScheduleParameter &parameter : schedule.parameters) {
    if (parameter.operand)
      prepared.operands.push_back({int64_t(prepared.parameterNames.size()), parameter.operand->hasLength});
    prepared.parameterNames.push_back(parameter.name);
  }
  for (const ScheduleVariant &variant : schedule.variants) {
    VariantRates rates{variant.queryRate, {}};
    for (const ScheduleBranch &branch : variant.branches) {
      rates.keyRates.push_back(branch.keyRate);
      if (branch.masked && prepared.note.find(branch.reason) == std::string::npos)
        prepared.note += (prepared.note.empty() ? "masked: " : "; ") + branch.reason;
    }
    prepared.variants.push_back(std::move(rates));
  }
}

Result<PreparedPattern> preparePattern(const PatternFile &file) {
  PreparedPattern prepared;
  prepared.times = file.times();
  auto schedule = timeStage(prepared.times, "schedule", [&] { return file.schedule(); });
  HEDDLE_TRY(schedule.status());
  takeSchedule(prepared, *schedule);
  prepared.grain = attn::grainOf(file.analysis());
  prepared.balance = tileBalance(file);
  PatternInfo info = patternInfoOf(*schedule);
  auto text = timeStage(prepared.times, "emit", [&] { return emitPatternFunctions(*schedule->functions, info); });
  if (failed(text))
    return Status::invalidArgument(file.takeDiagnostics());
  prepared.functions = std::move(*text);
  HEDDLE_ASSIGN(prepared.digest, timeStage(prepared.times, "digest", [&] { return file.digest(); }));
  return prepared;
}

} // namespace heddle
