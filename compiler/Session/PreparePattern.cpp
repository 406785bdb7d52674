// The half of a compilation that needs MLIR.
#include "codegen/Config/PatternRates.h"
#include "codegen/Emit/EmitPattern.h"
#include "codegen/Emit/PatternInfo.h"
#include "codegen/Schedule/AttentionSchedule.h"
#include "codegen/Choose/WorkCounts.h"
#include "compiler/Session/CompileSession.h"
#include "compiler/Pattern/PatternFile.h"
#include "compiler/Pattern/PatternFunctions.h"
#include "compiler/Session/PreparedPattern.h"
#include "mlir/Dialect/Math/IR/Math.h"

using llvm::failed;
using llvm::FailureOr;

namespace heddle {

static void takeSchedule(PreparedPattern &prepared, const AttentionSchedule &schedule) {
  prepared.name = schedule.name;
  for (const ScheduleParameter &parameter : schedule.parameters)
    prepared.parameterNames.push_back(parameter.name);
  for (const ScheduleVariant &variant : schedule.variants)
    for (const ScheduleBranch &branch : variant.branches)
      if (branch.masked && prepared.note.find(branch.reason) == std::string::npos)
        prepared.note += (prepared.note.empty() ? "masked: " : "; ") + branch.reason;
}

static Result<std::string> emitted(const PatternFile &file, const AttentionSchedule &schedule, BoundedScores bounded) {
  FailureOr<std::string> text = emitPatternFunctions(*schedule.functions, patternInfoOf(schedule), bounded);
  if (failed(text))
    return Status::invalidArgument(file.takeDiagnostics());
  return std::move(*text);
}

static bool boundsScores(const AttentionSchedule &schedule) {
  bool found = false;
  (*schedule.functions).walk([&](mlir::math::TanhOp) { found = true; });
  return found;
}

static Result<PatternText> functionsText(const PatternFile &file, const AttentionSchedule &schedule,
                                         Walk walk = Walk::queries) {
  if (walk == Walk::both && failed(appendBackwardFunctions(*schedule.functions, file.lowered(), file.analysis())))
    return Status::invalidArgument(file.takeDiagnostics());
  PatternText text;
  HEDDLE_ASSIGN(text.usual, emitted(file, schedule, BoundedScores::fast));
  if (boundsScores(schedule)) {
    HEDDLE_ASSIGN(text.exact, emitted(file, schedule, BoundedScores::exact));
  }
  return text;
}

static Status preparePasses(PreparedPattern &prepared, const PatternFile &file,
                            const std::vector<PatternFile::Pass> &passes) {
  for (const PatternFile::Pass &pass : passes) {
    HEDDLE_ASSIGN(AttentionSchedule schedule, file.schedule(pass));
    HEDDLE_ASSIGN(PatternText functions, functionsText(file, schedule));
    prepared.passFunctions.push_back(std::move(functions));
  }
  return {};
}

static std::shared_ptr<const CountedPattern> countedOf(const PatternFile &file, const PassesOfFile &passes) {
  auto counted = std::make_shared<CountedPattern>();
  counted->whole = file.analysis();
  for (const PatternFile::Pass &pass : passes.passes)
    counted->passes.push_back(pass.analysis);
  return counted;
}

Result<PreparedPattern> preparePattern(const PatternFile &file, PassFunctions wanted, Walk walk) {
  PreparedPattern prepared;
  prepared.times = file.times();
  auto schedule = timeStage(prepared.times, "schedule", [&] { return file.schedule(); });
  HEDDLE_TRY(schedule.status());
  takeSchedule(prepared, *schedule);
  HEDDLE_ASSIGN(prepared.functions,
                timeStage(prepared.times, "emit", [&] { return functionsText(file, *schedule, walk); }));
  HEDDLE_TRY(timeStage(prepared.times, "passes", [&] {
    const PassesOfFile passes(file);
    PatternRates rates = ratesOf(file, passes);
    rates.keepsByHead = patternInfoOf(*schedule).keepsByHead;
    prepared.rates = std::make_shared<const PatternRates>(std::move(rates));
    prepared.counted = countedOf(file, passes);
    if (walk == Walk::both)
      return Status();
    if (wanted == PassFunctions::ofAll || prepared.rates->balance.gainsFromPasses)
      return preparePasses(prepared, file, passes.passes);
    return Status();
  }));
  HEDDLE_ASSIGN(prepared.digest, timeStage(prepared.times, "digest", [&] { return file.digest(); }));
  return prepared;
}

} // namespace heddle
