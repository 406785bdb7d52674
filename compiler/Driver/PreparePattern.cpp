//===- PreparePattern.cpp - the half of a compilation that needs MLIR -----===//
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "compiler/Driver/CompileSession.h"
#include "compiler/Driver/PatternFile.h"
#include "compiler/Driver/PatternFunctions.h"
#include "compiler/Driver/PreparedPattern.h"
#include "compiler/Driver/TileBalance.h"
#include "dialect/Analysis/Grain.h"

using llvm::failed;
using llvm::FailureOr;

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

static std::vector<VariantRates> ratesOf(const AttentionSchedule &schedule) {
  std::vector<VariantRates> variants;
  for (const ScheduleVariant &variant : schedule.variants) {
    VariantRates &rates = variants.emplace_back();
    rates.queryRate = variant.queryRate;
    rates.keyRates.clear();
    for (const ScheduleBranch &branch : variant.branches)
      rates.keyRates.push_back(branch.keyRate);
  }
  return variants;
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
  for (const ScheduleVariant &variant : schedule.variants)
    for (const ScheduleBranch &branch : variant.branches)
      if (branch.masked && prepared.note.find(branch.reason) == std::string::npos)
        prepared.note += (prepared.note.empty() ? "masked: " : "; ") + branch.reason;
  prepared.variants = ratesOf(schedule);
}

static Result<std::string> functionsOf(const PatternFile &file, const AttentionSchedule &schedule) {
  FailureOr<std::string> text = emitPatternFunctions(*schedule.functions, patternInfoOf(schedule));
  if (failed(text))
    return Status::invalidArgument(file.takeDiagnostics());
  return std::move(*text);
}

static Status preparePasses(PreparedPattern &prepared, const PatternFile &file, const std::vector<PatternFile::Pass> &passes) {
  for (const PatternFile::Pass &pass : passes) {
    HEDDLE_ASSIGN(AttentionSchedule schedule, file.schedule(pass));
    HEDDLE_ASSIGN(std::string functions, functionsOf(file, schedule));
    prepared.passes.push_back({ratesOf(schedule), attn::grainOf(pass.analysis)});
    prepared.passFunctions.push_back(std::move(functions));
  }
  return {};
}

Result<PreparedPattern> preparePattern(const PatternFile &file) {
  PreparedPattern prepared;
  prepared.times = file.times();
  auto schedule = timeStage(prepared.times, "schedule", [&] { return file.schedule(); });
  HEDDLE_TRY(schedule.status());
  takeSchedule(prepared, *schedule);
  prepared.grain = attn::grainOf(file.analysis());
  HEDDLE_ASSIGN(prepared.functions, timeStage(prepared.times, "emit", [&] { return functionsOf(file, *schedule); }));
  HEDDLE_TRY(timeStage(prepared.times, "passes", [&] {
    const std::vector<PatternFile::Pass> passes = file.passes(prepared.whyOnePass);
    prepared.balance = tileBalance(file, passes);
    return preparePasses(prepared, file, passes);
  }));
  HEDDLE_ASSIGN(prepared.digest, timeStage(prepared.times, "digest", [&] { return file.digest(); }));
  return prepared;
}

} // namespace heddle
