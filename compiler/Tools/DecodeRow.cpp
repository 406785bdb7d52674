#include "compiler/Tools/DecodeRow.h"
#include "compiler/Io/SequenceTensors.h"
#include "compiler/Tools/SafeStream.h"
#include "runtime/Core/ParseCount.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <numeric>

namespace heddle::cli {
namespace {

/// Of keys and values together: beyond it sequences share pages. Many times the L2 of any GPU.
constexpr int64_t kMostCacheBytes = int64_t(2) << 30;
constexpr int64_t kMostKeys = int64_t(1) << 30; // positions are below it

/// Of "N" or "LEAST-MOST".
std::optional<LengthRange> parseLengths(const std::string &text) {
  const size_t dash = text.find('-');
  const std::optional<int64_t> least = parseCount(text.substr(0, dash)),
                               most = dash == std::string::npos ? least : parseCount(text.substr(dash + 1));
  if (!least || !most || *least < 0 || *most < std::max<int64_t>(*least, 1) || *most > kMostKeys)
    return std::nullopt;
  return LengthRange{*least, *most};
}

int64_t pagesOf(int64_t keys, int64_t pageSize) { return (keys + pageSize - 1) / pageSize; }

/// What is asked of the GPU: the tensors, and how many keys each sequence, or list, has.
struct Batch {
  AttentionInputs inputs;
  std::vector<int64_t> lengths;
};

int64_t bytesOfKey(const Workload &workload) {
  return workload.shape.kvHeads * (workload.headDim + workload.valueDim) * dtypeBytes(workload.elements.k);
}

/// Pages of the cache: each sequence's own, as far as so many are of use.
int64_t pagesInCache(const Workload &workload, const std::vector<int64_t> &lengths, int64_t pageSize) {
  int64_t needed = 0, longest = 1;
  for (int64_t keys : lengths) {
    needed += pagesOf(keys, pageSize);
    longest = std::max(longest, pagesOf(keys, pageSize));
  }
  return std::clamp(needed, longest, std::max(longest, kMostCacheBytes / (pageSize * bytesOfKey(workload))));
}

int64_t sumOf(const std::vector<int64_t> &lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
}

/// Nobody shares rows.
Status checkRows(const Workload &workload, const std::vector<int64_t> &lengths) {
  if (sumOf(lengths) <= kMostCacheBytes / bytesOfKey(workload))
    return {};
  return Status::invalidArgument("--keys=rows: keys and values have more than 2 GiB; give fewer or shorter sequences");
}

/// Of inputs that have lengths, in the form that they have already.
void giveTables(AttentionInputs &inputs, const PageSizes &lie, HostTensor table) {
  if (inputs.isGiven(Role::sharedK))
    inputs.sharedK = shareFirstPages(lie, table, inputs.sequsedK);
  if (!inputs.isGiven(Role::kvIndptr)) {
    inputs.pageTable = std::move(table);
    return;
  }
  ChainedTables chain = chained(lie, table, inputs.sequsedK);
  inputs.sizes.maxPages = chain.entries.elements();
  inputs.kvIndptr = std::move(chain.offsets), inputs.kvIndices = std::move(chain.entries);
  inputs.kvLastPageLen = std::move(chain.lastLengths);
}

Result<Batch> makeBatch(const Workload &workload, const LengthRange &range, const KeyLayout &layout) {
  constexpr uint64_t kSeed = 2; // as for other kinds
  const ProblemShape &shape = workload.shape;
  Batch batch;
  AttentionSizes sizes = layout.sizesWith(
      {shape.batch, shape.seqlenQ, shape.seqlenK, shape.heads, shape.kvHeads, workload.headDim, workload.valueDim});
  PageSizes lie = {shape.batch, sizes.pages, sizes.pageSize, sizes.maxPages, sizes.tables};
  const HostTensor lengths = randomLengthsBetween(lie, range.least, range.most, kSeed);
  for (int64_t list = 0; list < lengths.elements(); ++list)
    batch.lengths.push_back(int64_t(lengths.get(list)));
  const bool isInRows = layout.places == KeyPlaces::rows;
  if (isInRows) {
    HEDDLE_TRY(checkRows(workload, batch.lengths));
    sizes.pageSize = sumOf(batch.lengths);
  } else {
    lie.pages = sizes.pages = pagesInCache(workload, batch.lengths, sizes.pageSize);
  }
  HEDDLE_ASSIGN(batch.inputs, randomAttentionInputs(sizes, workload.elements.q, kSeed, workload.kind,
                                                    {layout.roles(), {}, workload.elements.k}));
  batch.inputs.sequsedK = lengths;
  if (isInRows)
    batch.inputs.cuSeqlensK = offsetsOf(lengths);
  else
    giveTables(batch.inputs, lie, pageTableOf(lie, lengths, kSeed));
  return batch;
}

/// Keys of one sequence that a head reads: those that at least one of its queries keeps, as the ranges say.
double keptKeys(const BenchSetup &setup, int64_t keys) {
  ProblemShape sequence = setup.workload.shape;
  sequence.batch = 1, sequence.seqlenK = keys;
  if (sequence.seqlenQ == 0 || keys == 0)
    return 0;
  const attn::TileShape column{sequence.seqlenQ, 1};
  const attn::TileCounts counts =
      attn::countTiles(setup.file.analysis(), sizesOf(QOriginRule::end, sequence), column, attn::Direction::Forward);
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
  return keys * double(bytesOfKey(workload)) / double(tables);
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

std::string LengthRange::text() const {
  return std::to_string(least) + (least == most ? "" : "-" + std::to_string(most));
}

void PagesOptions::add(CLI::App &command) {
  const auto areLengths = [](const std::string &text) {
    return parseLengths(text) ? "" : "expected N or LEAST-MOST keys, the most from 1 to 2^30, got '" + text + "'";
  };
  addValue(command, "--lengths", lengths, "N|LEAST-MOST",
           "Of --decode: keys of each sequence, or between which numbers they are at random; several, separated by "
           "commas")
      ->delimiter(',')
      ->check(areLengths);
  layout.add(command);
}

std::vector<LengthRange> PagesOptions::ranges() const {
  std::vector<LengthRange> ranges;
  for (const std::string &text : lengths)
    ranges.push_back(*parseLengths(text));
  return ranges;
}

std::optional<double> DecodeRow::readGigabytesPerSecond() const {
  return readUs > 0 ? std::optional(double(readBytes) / readUs / 1000) : std::nullopt;
}

std::optional<double> DecodeRow::percentOfRead() const {
  const std::optional<double> read = readGigabytesPerSecond();
  return read ? std::optional(100 * gigabytesPerSecond() / *read) : std::nullopt;
}

Result<DecodeRow> measureDecode(const BenchSetup &setup, const LengthRange &lengths, const KeyLayout &layout,
                                const ReadRoof *read) {
  const Workload &workload = setup.workload;
  HEDDLE_ASSIGN(const ChosenKernel chosen, kernelFor(setup, workload.kind));
  HEDDLE_ASSIGN(const ConfigSummary config, summarizeConfig(chosen.record.config));
  HEDDLE_TRY(checkSkeleton(setup, config));
  DecodeRow row;
  row.pattern = setup.file.pattern().getSymName().str();
  row.match = chosen.match, row.config = config.skeleton + " " + config.line;
  row.workload = workload, row.lengths = lengths, row.layout = layout;
  HEDDLE_ASSIGN(const Batch batch, makeBatch(workload, lengths, layout));
  row.keys = sumOf(batch.lengths);
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
          row.pattern.c_str(), (long long)shape.batch, (long long)shape.seqlenQ, row.lengths.text().c_str(),
          (long long)row.layout.pageSize, heads.c_str(), (long long)row.workload.headDim, row.us,
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
                    {"least_keys", row.lengths.least},
                    {"most_keys", row.lengths.most},
                    {"keys", row.keys},
                    {"page_size", row.layout.pageSize},
                    {"pages", row.pages},
                    {"keys_in", keyPlacesName(row.layout.places)},
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
