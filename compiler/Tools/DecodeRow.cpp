#include "compiler/Tools/DecodeRow.h"
#include "compiler/Tools/SafeStream.h"

#include <cmath>
#include <iostream>
#include <map>

namespace heddle::cli {
namespace {

AttentionSizes sizesOf(const Workload &workload) {
  const ProblemShape &shape = workload.shape;
  return {shape.batch, shape.seqlenQ, shape.seqlenK, shape.heads, shape.kvHeads, workload.headDim, workload.valueDim};
}

/// Keys of one sequence that a head reads: those that at least one of its queries keeps, as the ranges say.
double keptKeys(const BenchSetup &setup, int64_t keys) {
  ProblemShape sequence = setup.workload.shape;
  sequence.batch = 1, sequence.seqlenK = keys;
  if (sequence.seqlenQ == 0 || keys == 0)
    return 0;
  const attn::TileShape column{sequence.seqlenQ, 1};
  const attn::TileCounts counts = attn::countTiles(setup.file.analysis(), heddle::sizesOf(QOriginRule::end, sequence),
                                                   column, attn::Direction::Forward);
  return static_cast<double>(counts.visited) / double(sequence.heads);
}

double keptBytesOf(const BenchSetup &setup, const std::vector<int64_t> &lengths, int64_t tables) {
  std::map<int64_t, int64_t> sequencesOf;
  for (int64_t keys : lengths)
    ++sequencesOf[keys];
  const Workload &workload = setup.workload;
  double keys = 0;
  for (const auto &[length, sequences] : sequencesOf)
    keys += double(sequences) * keptKeys(setup, length);
  return keys * double(bytesOfKey(sizesOf(workload), workload.elements)) / double(tables);
}

Status timeRow(const BenchSetup &setup, const PreparedLaunch &launch, const ReadRoof *read, DecodeRow &row) {
  std::vector<Launch> launches = {[&] { return launch.launch(nullptr); }};
  if (read)
    launches.push_back([&] { return read->launch(); });
  HEDDLE_ASSIGN(const std::vector<double> medians, timeInTurn(setup, launches));
  row.us = medians[0];
  if (read)
    row.readUs = medians[1], row.readBytes = read->bytes();
  return {};
}

} // namespace

std::optional<double> DecodeRow::readGigabytesPerSecond() const {
  return readUs > 0 ? std::optional(double(readBytes) / readUs / 1000) : std::nullopt;
}

std::optional<double> DecodeRow::percentOfRead() const {
  const std::optional<double> read = readGigabytesPerSecond();
  return read ? std::optional(100 * gigabytesPerSecond() / *read) : std::nullopt;
}

Result<DecodeRow> measureDecode(const BenchSetup &setup, const ServedKeys &keys, const ReadRoof *read) {
  constexpr uint64_t kSeed = 2; // as for other kinds
  const Workload &workload = setup.workload;
  HEDDLE_ASSIGN(const ChosenKernel chosen, kernelFor(setup, workload.kind));
  HEDDLE_ASSIGN(const ConfigSummary config, summarizeConfig(chosen.record.config));
  HEDDLE_TRY(checkSkeleton(setup, config));
  DecodeRow row;
  row.pattern = setup.file.pattern().getSymName().str();
  row.match = chosen.match, row.config = config.skeleton + " " + config.line;
  row.workload = workload, row.served = keys;
  HEDDLE_ASSIGN(const ServedBatch batch,
                randomServedBatch(sizesOf(workload), keys, workload.elements, workload.kind, kSeed));
  row.keys = batch.keys();
  row.pages = batch.inputs.sizes.pages;
  row.keptBytes = keptBytesOf(setup, batch.lengths, batch.inputs.sizes.tables);
  const float scale = 1 / std::sqrt(static_cast<float>(workload.headDim));
  const DeviceCall call{setup.file, workload.shape, batch.inputs, scale};
  const auto reference = oracle::referenceOf(definitionOf(call), setup.verifiedRows);
  HEDDLE_ASSIGN(DeviceProblem problem, DeviceProblem::create(setup.device, call));
  HEDDLE_ASSIGN(const LoadedLaunch loaded, loadFor(problem, setup, chosen.record));
  HEDDLE_TRY(timeRow(setup, loaded.launch, read, row));
  HEDDLE_ASSIGN(row.verified, problem.compare(*reference));
  HEDDLE_ASSIGN(row.missing, problem.countNaN());
  return row;
}

void printRow(const DecodeRow &row, bool withHeader) {
  if (withHeader)
    printTo(std::cout, "%-16s %9s %7s %17s %4s %7s %4s %10s %9s %7s %10s %10s %6s  %s\n", "pattern", "sequences",
            "queries", "keys", "page", "heads", "d", "us", "GB/s", "% read", "error", "allowed", "right", "kernel");
  const ProblemShape &shape = row.workload.shape;
  const oracle::RoleReport &worst = row.verified.worst();
  const std::string heads = std::to_string(shape.heads) + "/" + std::to_string(shape.kvHeads);
  printTo(std::cout, "%-16s %9lld %7lld %17s %4lld %7s %4lld %10.1f %9.0f %7s %10.2e %10.2e %6s  %s: %s\n",
          row.pattern.c_str(), (long long)shape.batch, (long long)shape.seqlenQ, row.served.lengths.text().c_str(),
          (long long)row.served.layout.pageSize, heads.c_str(), (long long)row.workload.headDim, row.us,
          row.gigabytesPerSecond(), rateText(row.percentOfRead()).c_str(), worst.maxError, worst.allowedError,
          row.isRight() ? "yes" : "NO", row.match.c_str(), row.config.c_str());
  std::cout.flush();
}

Json rowsJson(const std::vector<DecodeRow> &rows, const std::string &device) {
  Json list = Json::array();
  for (const DecodeRow &row : rows) {
    const ProblemShape &shape = row.workload.shape;
    list.push_back({{"pattern", row.pattern},
                    {"kind", row.workload.kind.str()},
                    {"sequences", shape.batch},
                    {"seqlen_q", shape.seqlenQ},
                    {"least_keys", row.served.lengths.least},
                    {"most_keys", row.served.lengths.most},
                    {"keys", row.keys},
                    {"page_size", row.served.layout.pageSize},
                    {"pages", row.pages},
                    {"keys_in", keyPlacesName(row.served.layout.places)},
                    {"heads", shape.heads},
                    {"kv_heads", shape.kvHeads},
                    {"head_dim", row.workload.headDim},
                    {"value_dim", row.workload.valueDim},
                    {"dtype", dtypeName(row.workload.elements.q)},
                    {"kv_dtype", dtypeName(row.workload.elements.k)},
                    {"median_us", row.us},
                    {"kept_bytes", row.keptBytes},
                    {"gbps", row.gigabytesPerSecond()},
                    {"read_us", row.readUs},
                    {"read_bytes", row.readBytes},
                    {"read_gbps", rateJson(row.readGigabytesPerSecond())},
                    {"percent_of_read", rateJson(row.percentOfRead())},
                    {"missing", row.missing},
                    {"ok", row.isRight()},
                    {"match", row.match},
                    {"config", row.config}});
    list.back().update(errorsJson(row.verified));
  }
  return {{"device", device}, {"roof", "read of device memory in the same run"}, {"rows", list}};
}

} // namespace heddle::cli
