//===- LauncherProcess.cpp - a call in a process without a compiler -------===//
#include "compiler/Measure/LauncherProcess.h"
#include "compiler/Measure/OperandFile.h"
#include "compiler/Io/Safetensors.h"
#include "dialect/IR/Operands.h"
#include "dialect/IR/PatternOperands.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <sstream>

namespace heddle {
namespace {

/// "NUMBER:WORD" of each argument that a kernel may ask the word of: sizes, numbers as their bits, lengths of tensors.
std::string sizesText(const PatternFile &file, const ProblemShape &shape) {
  attn::PatternOp pattern = file.pattern();
  std::string text;
  for (unsigned i = 0; i < shape.parameters.size(); ++i)
    if (!pattern.isOperand(i) || attn::lengthDimension(pattern, i))
      text += (text.empty() ? "" : ",") + std::to_string(i) + ":" + std::to_string(shape.parameters[i]);
  return text;
}

std::string commandOf(const PatternFile &file, const ProblemShape &shape, const LauncherCall &call) {
  const attn::ProblemSizes sizes = sizesOf(file, shape);
  const attn::PatternAnalysis &analysis = file.analysis();
  int64_t items = 0;
  for (int64_t head = 0; head < shape.heads; ++head)
    items += attn::countRowTiles(shape.seqlenQ,
                                 analysis.variants[attn::variantOf(analysis, sizes, head)].forward.rowRate, 128);
  const attn::WideInt visited = attn::countTiles(analysis, sizes, {128, 128}, attn::Direction::Forward).visited;
  std::ostringstream command;
  std::string shipped;
  for (const std::string &path : call.shipped)
    shipped += (shipped.empty() ? "" : ":") + path;
  command << '"' << call.program << "\" --db=\"" << call.database << "\" --name=" << call.name
          << " --kind=" << call.kind->name << " --dtype=" << dtypeName(call.dtype) << " --head-dim=" << call.headDim
          << " --value-dim=" << call.valueDim << " --batch=" << shape.batch << " --seqlen=" << shape.seqlenQ
          << " --seqlen-k=" << shape.seqlenK << " --heads=" << shape.heads << " --kv-heads=" << shape.kvHeads
          << " --q-origin=" << sizes.qOrigin << " --k-origin=" << sizes.kOrigin
          << " --work-items=" << items * shape.batch << " --visited-tiles=" << attn::toString(visited * shape.batch)
          << " --seed=" << call.seed << " --reps=" << call.repetitions << " --shipped-db=\"" << shipped << "\""
          << " --sizes=" << sizesText(file, shape);
  return command.str();
}

/// What the command prints.
Result<std::string> outputOf(const std::string &command, const std::string &program) {
  FILE *process = popen(command.c_str(), "r");
  if (!process)
    return Status::io("cannot start '" + program + "'");
  std::string said;
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, process))
    said += buffer;
  const int code = pclose(process);
  if (code != 0)
    return Status::internal("'" + program + "' failed (status " + std::to_string(code) + "): " + said);
  return said;
}

} // namespace

Result<LauncherAnswer> launchElsewhere(const PatternFile &file, const ProblemShape &shape, const LauncherCall &call) {
  const ScratchFile tensors("operands"), results("results");
  std::string command = commandOf(file, shape, call) + " --output=\"" + results.path + "\"";
  HEDDLE_ASSIGN(bool hasTensors, writeOperands(tensors.path, shape.operands));
  if (hasTensors)
    command += " --operands=\"" + tensors.path + "\"";
  HEDDLE_ASSIGN(std::string line, outputOf(command, call.program));
  const nlohmann::json said = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object())
    return Status::internal("'" + call.program + "' answered no object: " + line);
  HEDDLE_ASSIGN(SafetensorsFile written, SafetensorsFile::open(results.path));
  LauncherAnswer answer;
  answer.match = said.value("match", "");
  answer.medianUs = said.value("median_us", 0.0);
  for (const RoleSpec &role : rolesOf(*call.kind, Access::write)) {
    HEDDLE_ASSIGN(answer.results.of(role.role), written.read(role.name));
  }
  return answer;
}

} // namespace heddle
