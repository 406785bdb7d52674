//===- PagedCall.h - a call of sequences with random inputs -----*- C++ -*-===//
// Owns how tests make calls of kinds decode, decode_invariant and cascade: sequences of given lengths, whose keys lie in pages in random order, or in rows;
// what a sequence is as a dense call; and the results of the processors and of a kernel on the host.
//===----------------------------------------------------------------------===//
#ifndef HEDDLE_TESTS_UNIT_SUPPORT_PAGEDCALL_H
#define HEDDLE_TESTS_UNIT_SUPPORT_PAGEDCALL_H

#include "codegen/Choose/RatesOf.h"
#include "compiler/Io/RandomTensor.h"
#include "compiler/Io/SequenceTensors.h"
#include "support/KernelOnHost.h"

#include <numeric>
#include <random>

namespace heddle::test {

inline const Kind kDecode = {KindBase::decode}, kCascade = {KindBase::cascade},
                  kDecodeInvariant = {KindBase::decodeInvariant};

/// lists: each kv head has a table of its own, of fewer keys from head to head. usedRows: lengths say how many count.
/// indices: tables lie behind each other.
enum class Keys { pages, lists, rows, usedRows, indices };

struct PagedShape {
  std::vector<int> rows, keys; ///< of each sequence
  int64_t heads = 1, kvHeads = 1, pageSize = 16, headDim = 64, valueDim = 64;
  bool isRagged = false;
  DType dtype = DType::bf16;
  Keys lie = Keys::pages;
  std::optional<DType> cached = {}; ///< the type of k and v, where it is not that of q

  CallElements elements() const { return CallElements(dtype, outDType()).withKeys(cached.value_or(dtype)); }
  std::vector<int> origins = {}, wholes = {}; ///< of a pattern of parts; empty: not given
  std::optional<DType> out = {};
  bool hasRowsForKeys = false; ///< lists of the pattern are of as many queries as keys
  DType outDType() const { return out.value_or(dtype); }
  std::vector<int> shared = {};     ///< keys in the same pages as those of the sequence before; empty: of kind decode
  std::vector<int32_t> drafts = {}; ///< of each sequence, of pattern `trees`; empty: some

  bool isInvariant = false;
  const Kind &kind() const { return isInvariant ? kDecodeInvariant : shared.empty() ? kDecode : kCascade; }
  bool isInRows() const { return lie == Keys::rows || lie == Keys::usedRows; }
  int64_t tables() const { return lie == Keys::lists ? kvHeads : 1; }
  /// Keys that sequences have to one kv head after the other.
  std::vector<int> listKeys() const {
    std::vector<int> lengths;
    for (int64_t table = 0; table < tables(); ++table)
      for (int each : keys)
        lengths.push_back(int(each * (tables() - table) / tables()));
    return lengths;
  }
};

inline PagedShape shapeOf(std::vector<int> rows, std::vector<int> keys, int64_t heads, int64_t kvHeads,
                          int64_t pageSize, bool isRagged = false, Keys lie = Keys::pages) {
  PagedShape shape;
  shape.rows = std::move(rows), shape.keys = std::move(keys);
  shape.heads = heads, shape.kvHeads = kvHeads, shape.pageSize = pageSize, shape.isRagged = isRagged;
  shape.lie = lie;
  return shape;
}

/// A tree of 7 drafts, a single token, a piece of a prompt, nothing, a piece and 4 drafts behind it.
inline PagedShape mixedDrafts() {
  PagedShape shape = shapeOf({7, 1, 20, 0, 9}, {200, 77, 150, 30, 330}, 6, 2, 16, true);
  shape.drafts = {7, 0, 0, 0, 4};
  return shape;
}

inline HostTensor integers(std::vector<int64_t> shape, const std::vector<int32_t> &values) {
  HostTensor tensor = HostTensor::zeros(DType::i32, std::move(shape));
  std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
  return tensor;
}

struct PagedCall {
  PagedCall(const Compiled &given, const PagedShape &asked) : file(given.file.get()), jit(given.jit), asked(asked) {
    const int64_t count = int64_t(asked.rows.size());
    const int most = *std::max_element(asked.rows.begin(), asked.rows.end());
    shape.batch = count, shape.heads = asked.heads, shape.kvHeads = asked.kvHeads;
    shape.seqlenK = std::max(1, mostKeys()), shape.seqlenQ = asked.hasRowsForKeys ? shape.seqlenK : std::max(most, 1);
    shape.parameters = sizesFrom(*file, 3);
    for (int64_t argument : wholesOf(file->pattern())) // of the longest one
      shape.parameters[size_t(argument)] = std::accumulate(asked.wholes.begin(), asked.wholes.end(), mostKeys(),
                                                           [](int a, int b) { return std::max(a, b); });
    for (unsigned i = 0; i < file->pattern().getNumArguments(); ++i)
      if (file->pattern().isRealParameter(i))
        shape.parameters[i] = file->pattern().getParameterDefault(i).value_or(0);
    REQUIRE(bindOperands(*file, {{}, {}, OperandSources::Missing::make, 1}, shape).isOk());
    if (!asked.drafts.empty())
      shape.operands[1] = OperandTensor::integers({count}, asked.drafts);
    makeTables();
    makeTensors();
  }

  int mostKeys() const { return *std::max_element(asked.keys.begin(), asked.keys.end()); }
  int64_t firstRow(size_t sequence) const {
    return asked.isRagged ? std::accumulate(asked.rows.begin(), asked.rows.begin() + long(sequence), int64_t(0)) : 0;
  }

  oracle::KindCall kindCall() const {
    oracle::Problem problem;
    problem.heads = asked.heads, problem.parameters = shape.parameters, problem.operands = shape.operands;
    return {file->pattern(), problem, inputs, scale, asked.outDType()};
  }

  /// What is not written stays NaN.
  RoleTensors resultsBefore(DType outDType) const {
    RoleTensors results = heddle::resultsBefore(inputs, outDType);
    for (Role role : {Role::out, Role::lse})
      std::fill(results.of(role).data.begin(), results.of(role).data.end(), std::byte(0xff));
    return results;
  }

  CpuCall cpuCall(RoleTensors &results) const {
    CpuCall call;
    call.pattern = jit.get();
    call.elements = asked.elements();
    for (const KindRole &role : asked.kind().roles())
      if (const HostTensor &tensor = results.isGiven(role.role) ? results.of(role.role) : inputs.of(role.role);
          !tensor.shape.empty())
        call.give(role.role, tensor.data.data());
    setSizes(inputs.sizes, call);
    call.scale = float(scale);
    giveArguments(call);
    call.wholes = wholesOf(file->pattern());
    return call;
  }
  RoleTensors onCpu() const {
    RoleTensors results = resultsBefore(asked.outDType());
    const Status status = cpuFunctionOf(asked.kind().base)(cpuCall(results));
    REQUIRE_MESSAGE(status.isOk(), status.message());
    return results;
  }

  /// A sequence as a forward call on its keys, which are gathered, with a tile of as many queries.
  RoleTensors dense(size_t sequence) const {
    AttentionSizes sizes = inputs.sizes;
    sizes.batch = 1, sizes.seqlenQ = asked.rows[sequence], sizes.seqlenK = asked.keys[sequence];
    RoleTensors tensors;
    tensors.q = HostTensor::zeros(asked.dtype, sizes.shapeOf(specOf(Role::q)));
    std::memcpy(tensors.q.data.data(), inputs.q.data.data() + rowBytes(sequence, asked.headDim), tensors.q.data.size());
    for (Role role : {Role::k, Role::v})
      tensors.of(role) = gathered(role, sequence, sizes);
    RoleTensors results = emptyResultsOf(kForward, sizes, CallElements(asked.dtype));
    CpuCall call;
    call.pattern = jit.get();
    call.elements = asked.elements();
    setSizes(sizes, call);
    call.sequence = int32_t(sequence);
    call.qOrigin = asked.keys[sequence] - asked.rows[sequence], call.scale = float(scale);
    call.blockM = std::clamp(asked.rows[sequence], 1, call.blockM);
    for (Role role : {Role::q, Role::k, Role::v})
      call.give(role, tensors.of(role).data.data());
    for (Role role : {Role::out, Role::lse})
      call.give(role, results.of(role).data.data());
    for (Role role : {Role::descaleK, Role::descaleV})
      if (inputs.isGiven(role))
        call.give(role, inputs.of(role).data.data());
    giveArguments(call);
    const Status status = cpuFunctionOf(KindBase::forward)(call);
    REQUIRE_MESSAGE(status.isOk(), status.message());
    return results;
  }

  /// Rows of a sequence in the results of the call are those of its dense call, bit by bit.
  void checkAgainst(const RoleTensors &results, size_t sequence, const RoleTensors &expected) const {
    const size_t first = rowBytes(sequence, asked.valueDim);
    CHECK(std::equal(expected.out.data.begin(), expected.out.data.end(), results.out.data.begin() + long(first)));
    const int64_t rows = asked.rows[sequence], of = inputs.sizes.seqlenQ,
                  batch = asked.isRagged ? 0 : int64_t(sequence);
    for (int64_t head = 0; head < asked.heads; ++head)
      for (int64_t row = 0; row < rows; ++row) {
        const float own = results.lse.get((batch * asked.heads + head) * of + firstRow(sequence) + row);
        const float wanted = expected.lse.get(head * rows + row);
        CHECK(std::memcmp(&own, &wanted, sizeof own) == 0);
      }
  }

  /// Row `row` on of a sequence becomes those of another call, and so do its keys, of which both have as many.
  void take(size_t sequence, const PagedCall &from, size_t other, int row = 0) {
    const size_t ofRow = size_t(asked.heads * asked.headDim * dtypeBytes(asked.dtype));
    std::memcpy(inputs.q.data.data() + rowBytes(sequence, asked.headDim),
                from.inputs.q.data.data() + from.rowBytes(other, asked.headDim) + size_t(row) * ofRow,
                size_t(asked.rows[sequence]) * ofRow);
    for (Role role : {Role::k, Role::v}) {
      HostTensor &own = inputs.of(role);
      const size_t ofKey = size_t(own.shape[2] * own.shape[3] * dtypeBytes(own.dtype));
      for (int key = 0; key < asked.keys[sequence]; ++key)
        std::memcpy(own.data.data() + size_t(placeOf(sequence, key)) * ofKey,
                    from.inputs.of(role).data.data() + size_t(from.placeOf(other, key)) * ofKey, ofKey);
    }
    for (Role role : {Role::descaleK, Role::descaleV})
      for (int64_t head = 0; inputs.isGiven(role) && head < asked.kvHeads; ++head)
        inputs.of(role).set(int64_t(sequence) * asked.kvHeads + head,
                            from.inputs.of(role).get(int64_t(other) * asked.kvHeads + head));
  }

  /// Of rows [first, end) of a sequence: out, and lse of one head after the other.
  std::vector<std::byte> bytesOf(const RoleTensors &results, size_t sequence, int first, int end) const {
    const auto ofRow = long(asked.heads * asked.valueDim * dtypeBytes(asked.outDType()));
    const auto out = results.out.data.begin() + long(rowBytes(sequence, asked.valueDim));
    std::vector<std::byte> bytes(out + first * ofRow, out + end * ofRow);
    const int64_t batch = asked.isRagged ? 0 : int64_t(sequence);
    for (int64_t head = 0; head < asked.heads; ++head) {
      const int64_t row = (batch * asked.heads + head) * inputs.sizes.seqlenQ + firstRow(sequence);
      const auto lse = results.lse.data.begin() + long(row * 4);
      bytes.insert(bytes.end(), lse + first * 4L, lse + end * 4L);
    }
    return bytes;
  }

  HostCall hostCall(RoleTensors &results, int64_t processors) const {
    HostCall host;
    const AttentionSizes &s = inputs.sizes;
    host.scaleLog2 = float(scale / std::log(2.0));
    const std::pair<LaunchSymbol, int64_t> sizes[] = {{LaunchSymbol::batch, s.batch},
                                                      {LaunchSymbol::heads, s.heads},
                                                      {LaunchSymbol::kvHeads, s.kvHeads},
                                                      {LaunchSymbol::seqlenQ, s.seqlenQ},
                                                      {LaunchSymbol::sequences, int64_t(asked.rows.size())},
                                                      {LaunchSymbol::pages, s.pages},
                                                      {LaunchSymbol::pageSize, s.pageSize},
                                                      {LaunchSymbol::maxPages, asked.isInRows() ? 1 : s.maxPages},
                                                      {LaunchSymbol::tables, s.tables},
                                                      {LaunchSymbol::smCount, processors}};
    for (const auto &[symbol, value] : sizes)
      host.symbols[symbol] = value;
    host.symbols.params = shape.parameters.data();
    host.symbols.paramCount = int64_t(shape.parameters.size());
    const auto tensorOf = [this, &results](Role role) -> const HostTensor & {
      return results.isGiven(role) ? results.of(role) : inputs.of(role);
    };
    for (Role role : {Role::q, Role::k, Role::v, Role::out}) {
      const std::vector<int64_t> &extents = tensorOf(role).shape;
      host.symbols[strideOf(role, StrideDim::batch)] = extents[1] * extents[2] * extents[3];
      host.symbols[strideOf(role, StrideDim::row)] = extents[2] * extents[3];
      host.symbols[strideOf(role, StrideDim::head)] = extents[3];
    }
    host.address = [this, tensorOf](const PointerSource &source) -> const void * {
      if (source.kind == PointerSource::Kind::operand)
        return shape.operands[size_t(source.index)].address();
      const HostTensor &tensor = tensorOf(Role(source.index));
      return tensor.shape.empty() ? nullptr : tensor.data.data();
    };
    return host;
  }

  const PatternFile *file;
  std::shared_ptr<const JitPattern> jit;
  PagedShape asked;
  ProblemShape shape;
  AttentionInputs inputs;
  double scale = 0.125;

private:
  HostTensor pages; ///< the table, however it is given

  void giveArguments(CpuCall &call) const {
    call.params.assign(shape.parameters.begin(), shape.parameters.end());
    for (const OperandTensor &tensor : shape.operands)
      if (tensor)
        call.operands.push_back(tensor.address());
  }

  size_t rowBytes(size_t sequence, int64_t dim) const {
    const int64_t row = asked.isRagged ? firstRow(sequence) : int64_t(sequence) * inputs.sizes.seqlenQ;
    return size_t(row * asked.heads * dim * dtypeBytes(asked.dtype));
  }

  static HostTensor offsetsOf(const std::vector<int> &lengths) {
    std::vector<int32_t> offsets = {0};
    for (int length : lengths)
      offsets.push_back(offsets.back() + length);
    return integers({int64_t(offsets.size())}, offsets);
  }

  void makeTables() {
    inputs.sizes.sequences = int64_t(asked.rows.size());
    inputs.sizes.tables = asked.tables();
    asked.isInRows() ? makeRows() : makePages();
    if (!asked.shared.empty())
      inputs.sharedK = integers({int64_t(asked.shared.size())}, asked.shared);
    for (const auto &[role, given] : {std::pair(Role::kOrigins, asked.origins), {Role::wholeK, asked.wholes}})
      if (!given.empty())
        inputs.of(role) = integers({int64_t(given.size())}, given);
    if (asked.lie == Keys::indices)
      makeIndices();
    else if (asked.lie != Keys::rows)
      inputs.sequsedK = integers(inputs.sizes.shapeOf(specOf(Role::sequsedK)), asked.listKeys());
    if (asked.isRagged)
      inputs.cuSeqlensQ = offsetsOf(asked.rows);
  }

  void makeRows() {
    std::vector<int> lengths = asked.keys;
    for (int &each : lengths)
      each += asked.lie == Keys::usedRows ? 3 : 0;
    inputs.cuSeqlensK = offsetsOf(lengths);
    inputs.sizes.pages = 1;
    inputs.sizes.pageSize = std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
  }

  /// Entries that no key needs name no page.
  void makePages() {
    AttentionSizes &sizes = inputs.sizes;
    sizes.pageSize = asked.pageSize;
    sizes.maxPages = (mostKeys() + asked.pageSize - 1) / asked.pageSize + 1;
    std::vector<int32_t> needed;
    for (int keys : asked.listKeys())
      needed.push_back(int32_t((keys + asked.pageSize - 1) / asked.pageSize));
    sizes.pages = std::accumulate(needed.begin(), needed.end(), 2);
    std::vector<int32_t> order(size_t(sizes.pages)), table(needed.size() * size_t(sizes.maxPages), -1);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(11));
    auto page = order.begin();
    for (size_t list = 0; list < needed.size(); ++list) {
      const auto row = table.begin() + long(list) * long(sizes.maxPages);
      std::copy_n(page, needed[list], row);
      if (const int64_t both = asked.shared.empty() ? 0 : asked.shared[list])
        std::copy_n(row - long(sizes.maxPages), (both + asked.pageSize - 1) / asked.pageSize, row);
      page += needed[list];
    }
    pages = inputs.pageTable = integers(sizes.shapeOf(specOf(Role::pageTable)), table);
  }

  void makeIndices() {
    const AttentionSizes &sizes = inputs.sizes;
    ChainedTables chain = chained({sizes.sequences, sizes.pages, sizes.pageSize, sizes.maxPages}, pages,
                                  integers({int64_t(asked.keys.size())}, asked.keys));
    inputs.sizes.maxPages = chain.entries.elements();
    inputs.kvIndptr = chain.offsets, inputs.kvIndices = chain.entries, inputs.kvLastPageLen = chain.lastLengths;
    inputs.pageTable = {};
  }

  /// Keys behind the lengths are NaN.
  void makeTensors() {
    AttentionSizes &sizes = inputs.sizes;
    inputs.kind = asked.kind();
    sizes.batch = asked.isRagged ? 1 : int64_t(asked.rows.size());
    sizes.seqlenQ = asked.isRagged ? firstRow(asked.rows.size()) : asked.rows.front();
    sizes.heads = asked.heads, sizes.kvHeads = asked.kvHeads;
    sizes.headDim = asked.headDim, sizes.valueDim = asked.valueDim;
    for (const auto &[role, name] : {std::pair(Role::q, "q"), {Role::k, "k"}, {Role::v, "v"}})
      inputs.of(role) = randomNormalTensor(asked.elements().of(specOf(role).element),
                                           sizes.shapeOf(specOf(*kDecode.find(role))), 5, name);
    for (Role role : {Role::descaleK, Role::descaleV})
      if (asked.cached)
        inputs.of(role) = scalesOf(role, sizes);
    std::vector<bool> isUsed(size_t(sizes.pages * sizes.pageSize), false);
    const std::vector<int> lengths = asked.listKeys();
    for (size_t list = 0; list < lengths.size(); ++list)
      for (int64_t key = 0; key < lengths[list]; ++key)
        isUsed[size_t(placeOf(list, key))] = true;
    for (Role role : {Role::k, Role::v}) {
      HostTensor &tensor = inputs.of(role);
      const int64_t perKey = tensor.shape[2] * tensor.shape[3];
      for (size_t place = 0; place < isUsed.size(); ++place)
        for (int64_t i = 0; !isUsed[place] && i < perKey; ++i)
          tensor.set(int64_t(place) * perKey + i, NAN);
    }
  }

  /// Another one for each sequence and kv head.
  static HostTensor scalesOf(Role role, const AttentionSizes &sizes) {
    HostTensor scales = HostTensor::zeros(DType::fp32, sizes.shapeOf(specOf(*kDecode.find(role))));
    for (int64_t i = 0; i < scales.elements(); ++i)
      scales.set(i, float(role == Role::descaleK ? 3 + i % 4 : 5 - i % 3) / 8);
    return scales;
  }

  /// Of a key among those of all pages.
  int64_t placeOf(size_t list, int64_t key) const {
    if (asked.isInRows())
      return int64_t(inputs.cuSeqlensK.get(int64_t(list))) + key;
    const int64_t size = inputs.sizes.pageSize, entry = int64_t(list) * pages.shape.back() + key / size;
    return int64_t(pages.get(entry)) * size + key % size;
  }

  HostTensor gathered(Role role, size_t sequence, const AttentionSizes &sizes) const {
    HostTensor tensor = HostTensor::zeros(inputs.of(role).dtype, sizes.shapeOf(specOf(role)));
    const size_t perKey = size_t(tensor.shape[2] * tensor.shape[3] * dtypeBytes(tensor.dtype));
    for (int64_t key = 0; key < sizes.seqlenK; ++key)
      std::memcpy(tensor.data.data() + size_t(key) * perKey,
                  inputs.of(role).data.data() + size_t(placeOf(sequence, key)) * perKey, perKey);
    return tensor;
  }
};

/// Results against the definition, in `rows` rows, and that they do not depend on the order of blocks: run(call, order).
template <class Run> void checkPaged(const PagedCall &call, int64_t rows, const Run &run) {
  const RoleTensors results = run(call, BlockOrder::ascending);
  const oracle::KindReport report = oracle::verifyCall(call.kindCall(), results, rows);
  REQUIRE(report.roles.size() == 2);
  for (const oracle::RoleReport &role : report.roles) {
    INFO(role.name() << " batch " << role.worst.batch << " head " << role.worst.head << " row " << role.worst.row);
    CHECK(role.maxError <= role.allowedError);
  }
  const RoleTensors again = run(call, BlockOrder::descending);
  CHECK(again.out.data == results.out.data);
  CHECK(again.lse.data == results.lse.data);
}

} // namespace heddle::test

#endif
