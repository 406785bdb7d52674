// Calls that go through their sequence piece by piece against one call, for every file of patterns/ without tensors; rows
// that are read against those that are made; rows near the farthest position against the definition; what is read against
// what the plan says.
#include "support/LibraryFiles.h"
#include "codegen/Nvrtc/Compiler.h"
#include "compiler/Library/HostCall.h"
#include "compiler/Stream/CheckedRows.h"
#include "compiler/Stream/HostMachine.h"
#include "compiler/Stream/PiecesFile.h"
#include "compiler/Stream/RandomKernel.h"
#include "compiler/Stream/random_rows.cuh"
#include "runtime/Core/Positions.h"
#include "runtime/Device/Kernel.h"
#include "scratch_fixture.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <filesystem>

using namespace heddle;
using heddle::test::ScratchFolder;

namespace {

template <class T> T must(Result<T> result) {
  REQUIRE_MESSAGE(result.isOk(), result.status().message());
  return result.take();
}
void must(const Status &status) { REQUIRE_MESSAGE(status.isOk(), status.message()); }

/// A pattern and a call of it on made inputs.
struct Subject {
  std::unique_ptr<PatternFile> file;
  std::shared_ptr<CompiledPattern> whole, part;
  ProblemShape shape;
  std::unique_ptr<RandomRows> source;
  std::vector<heddle_operand> operands;

  attn::ProblemSizes sizes() const { return sizesOf(*file, shape); }
  oracle::Problem problem() const {
    return {shape.heads, shape.seqlenQ, shape.seqlenK, 0, 0, shape.parameters, shape.operands};
  }
  float scale() const { return float(1 / std::sqrt(double(source->sizes.headDim))); }
};

std::optional<Subject> subjectOf(const std::string &path, AttentionSizes sizes, DType dtype = DType::fp32) {
  Subject made;
  made.file = must(PatternFile::load(path));
  attn::PatternOp pattern = made.file->pattern();
  std::vector<std::string> small;
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (pattern.isOperand(i))
      return std::nullopt;
    else if (!pattern.isRealParameter(i))
      small.push_back(pattern.getParameterName(i).str() + "=" +
                      std::to_string(std::max<int64_t>(19, pattern.getParameterMinimum(i))));
  made.whole = must(CompiledPattern::create(made.file->text(), path, {}));
  Result<std::shared_ptr<CompiledPattern>> part = made.whole->part();
  if (!part)
    return std::nullopt;
  made.part = part.take();
  made.source = must(RandomRows::create(sizes, dtype, 7));
  made.shape = shapeOf(sizes);
  made.shape.parameters = must(made.file->bindParameters(small));
  for (unsigned i = 0; i < pattern.getNumArguments(); ++i)
    if (!pattern.isRealParameter(i)) {
      heddle_operand &operand = made.operands.emplace_back();
      operand.id = int32_t(i), operand.kind = HEDDLE_OPERAND_INT, operand.value.i64 = made.shape.parameters[i];
    }
  return made;
}

/// What a call gives, in memory.
struct Collected : StreamSink {
  Collected(const RowSource &source, int64_t firstRow) : sizes(source.sizes), firstRow(firstRow) {
    sizes.seqlenQ -= firstRow;
    out.assign(size_t(sizes.batch * sizes.seqlenQ * sizes.heads * sizes.valueDim), NAN);
    lse.assign(size_t(sizes.batch * sizes.heads * sizes.seqlenQ), NAN);
  }
  Status take(const StreamPiece &piece, StreamMachine &) override {
    const int64_t rows = piece.rows.size(), first = piece.rows.begin - firstRow, width = sizes.heads * sizes.valueDim;
    for (int64_t batch = 0; batch < sizes.batch; ++batch)
      std::memcpy(out.data() + (batch * sizes.seqlenQ + first) * width, piece.out + batch * rows * width * 4,
                  size_t(rows * width) * 4);
    for (int64_t line = 0; line < sizes.batch * sizes.heads; ++line)
      std::memcpy(lse.data() + line * sizes.seqlenQ + first, piece.lse + line * rows * 4, size_t(rows) * 4);
    return {};
  }
  AttentionSizes sizes;
  int64_t firstRow;
  std::vector<float> out, lse;
};

StreamRequest requestOf(const Subject &subject, const attn::ProblemSizes &sizes, int64_t pieceRows,
                        int64_t firstRow = 0) {
  StreamRequest request{*subject.file, sizes, subject.part->info().digest, subject.part->wholes(), subject.scale()};
  request.operands = subject.operands;
  request.pieceRows = pieceRows;
  request.firstRow = firstRow;
  return request;
}

Collected oneCall(const Subject &subject) {
  const AttentionSizes &sizes = subject.source->sizes;
  const AttentionInputs inputs = must(randomAttentionInputs(sizes, DType::fp32, 7));
  Collected result(*subject.source, 0);
  heddle_attention_args args = makeAttentionArgs();
  auto bind = [&](Role role, const void *data) {
    bindRole(args, role, const_cast<void *>(data), DType::fp32, sizes.shapeOf(specOf(role)));
  };
  for (Role role : {Role::q, Role::k, Role::v})
    bind(role, inputs.of(role).data.data());
  bind(Role::out, result.out.data());
  args.lse = result.lse.data();
  args.scale = subject.scale();
  args.operands = subject.operands.data(), args.operand_count = subject.operands.size();
  must(runOnHost({}, *subject.whole, args, 1));
  return result;
}

double farthest(const std::vector<float> &a, const std::vector<float> &b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i])
      most = std::isfinite(a[i]) && std::isfinite(b[i]) ? std::max(most, std::abs(double(a[i]) - b[i])) : INFINITY;
  return most;
}

const std::string kWindow = test::places().patterns + "/sliding_window.mlir";

} // namespace

TEST_CASE("every pattern without tensors is piece by piece what one call computes") {
  long subjects = 0;
  for (const std::string &path : test::halfOfLibrary(0)) {
    CAPTURE(path);
    const std::optional<Subject> subject = subjectOf(path, {2, 200, 200, 4, 2, 8, 8});
    if (!subject)
      continue;
    ++subjects;
    const Collected whole = oneCall(*subject);
    const attn::ProblemSizes sizes = subject->sizes();
    for (int64_t pieceRows : {200, 50, 37, 11}) {
      CAPTURE(pieceRows);
      HostMachine machine(subject->part, *subject->source, 1);
      StreamCall call = must(StreamCall::create(requestOf(*subject, sizes, pieceRows), machine));
      Collected pieces(*subject->source, 0);
      must(call.run({&pieces}));
      CHECK(farthest(pieces.out, whole.out) <= 2e-6);
      CHECK(farthest(pieces.lse, whole.lse) <= 4e-6);
      CHECK(machine.givenBytes() == call.forecast().readBytes);
    }
  }
  CHECK(subjects >= (test::takesAll() ? 25 : 12));
}

TEST_CASE("a window reads what its rows keep, and rows before the first one are keys alone") {
  const Subject subject = *subjectOf(kWindow, {1, 1000, 1000, 1, 1, 8, 8});
  const attn::ProblemSizes sizes = subject.sizes();
  const Collected whole = oneCall(subject);
  HostMachine machine(subject.part, *subject.source, 1);
  StreamCall call = must(StreamCall::create(requestOf(subject, sizes, 100, 600), machine));
  CHECK(call.forecast().pieces == 4);
  CHECK(call.forecast().mostWindowRows == 119);
  CHECK(call.forecast().readBytes == (4 * 100 * 3 + 4 * 19 * 2) * 8 * 4);
  Collected rows(*subject.source, 600);
  must(call.run({&rows}));
  CHECK(farthest(rows.out, {whole.out.begin() + 600 * 8, whole.out.end()}) <= 2e-6);
  CHECK(farthest(rows.lse, {whole.lse.begin() + 600, whole.lse.end()}) <= 4e-6);
}

TEST_CASE("keys of all rows come in windows of a bounded size, and the softmax continues") {
  const Subject subject = *subjectOf(test::places().patterns + "/causal.mlir", {1, 640, 640, 1, 1, 8, 8});
  const attn::ProblemSizes sizes = subject.sizes();
  HostMachine machine(subject.part, *subject.source, 1);
  const StreamCall call = must(StreamCall::create(requestOf(subject, sizes, 64), machine));
  CHECK(call.forecast().mostWindowRows == 128);
  CHECK(call.forecast().launches > call.forecast().pieces);
}

TEST_CASE("rows near the farthest position are those of the definition") {
  for (const char *name : {"sliding_window", "longnet", "dilated_window", "dilated"}) {
    CAPTURE(std::string(name));
    const int64_t rows = kFarthestPosition, first = rows - 300;
    const std::optional<Subject> subject = subjectOf(test::places().patterns + ("/" + std::string(name) + ".mlir"),
                                                     {1, rows, rows, 2, 1, 8, 8}, DType::bf16);
    REQUIRE(subject);
    const attn::ProblemSizes sizes = subject->sizes();
    const oracle::Problem problem = subject->problem();
    HostMachine machine(subject->part, *subject->source, 1);
    StreamCall call = must(StreamCall::create(requestOf(*subject, sizes, 128, first), machine));
    CheckedRows checked(*subject->file, sizes, problem, *subject->source, subject->scale(), first, 40);
    must(call.run({&checked}));
    const CheckedReport report = must(checked.compare());
    CHECK(report.rows.rowsChecked + report.skippedRows == 40);
    CHECK(report.skippedRows == 0);
    CHECK(report.rows.isOk());
    CHECK(report.otherKeys > 40 * 100);
  }
}

TEST_CASE("a wrong row, and a key that the analysis leaves out, are found") {
  const Subject subject = *subjectOf(kWindow, {1, 256, 256, 1, 1, 8, 8}, DType::bf16);
  const attn::ProblemSizes sizes = subject.sizes();
  const oracle::Problem problem = subject.problem();
  struct Spoiled : StreamSink {
    CheckedRows &inner;
    explicit Spoiled(CheckedRows &inner) : inner(inner) {}
    Status take(const StreamPiece &piece, StreamMachine &machine) override {
      const_cast<char *>(piece.out)[1] ^= 1;
      return inner.take(piece, machine);
    }
  };
  HostMachine machine(subject.part, *subject.source, 1);
  StreamCall call = must(StreamCall::create(requestOf(subject, sizes, 64), machine));
  CheckedRows checked(*subject.file, sizes, problem, *subject.source, subject.scale(), 0, 256);
  Spoiled spoiled(checked);
  must(call.run({&spoiled}));
  CHECK_FALSE(must(checked.compare()).rows.isOk());

  attn::ProblemSizes narrow = sizes; // the analysis of another window than the definition's
  narrow.parameters[0] = 12;
  CheckedRows other(*subject.file, narrow, problem, *subject.source, subject.scale(), 0, 16);
  must(call.run({&other}));
  const Result<CheckedReport> missed = other.compare();
  REQUIRE_FALSE(missed);
  CHECK(missed.status().message().find("which the analysis leaves out") != std::string::npos);
}

TEST_CASE("rows of a file and rows that are made are those of the tensors") {
  const ScratchFolder scratch;
  const AttentionSizes sizes{2, 70, 70, 3, 3, 16, 16};
  const AttentionInputs inputs = must(randomAttentionInputs(sizes, DType::bf16, 7));
  const std::string path = scratch / "x.safetensors";
  must(writeAttentionInputs(path, inputs, 7));
  const std::unique_ptr<RowSource> ofFile = must(FileRows::open(path));
  const std::unique_ptr<RandomRows> made = must(RandomRows::create(sizes, DType::bf16, 7));
  for (const RowBlock &block : {RowBlock{Role::q, 0, 2, {0, 1, 70}, 0, 3}, RowBlock{Role::k, 1, 1, {3, 7, 9}, 0, 3},
                                RowBlock{Role::v, 0, 2, {69, 1, 1}, 2, 1}, RowBlock{Role::k, 0, 2, {1, 3, 20}, 1, 2}}) {
    std::vector<std::byte> expected;
    const HostTensor &tensor = inputs.of(block.role);
    for (int64_t batch = 0; batch < block.batches; ++batch)
      for (int64_t row = 0; row < block.rows.count; ++row) {
        const int64_t number = (block.firstBatch + batch) * 70 + block.rows.first + row * block.rows.rate;
        const auto *from = tensor.data.data() + (number * 3 + block.firstHead) * 16 * 2;
        expected.insert(expected.end(), from, from + block.heads * 16 * 2);
      }
    std::vector<std::byte> read(expected.size());
    CHECK(ofFile->bytesOf(block) == int64_t(expected.size()));
    must(ofFile->read(block, read.data()));
    CHECK(read == expected);
    std::fill(read.begin(), read.end(), std::byte(0xff));
    must(made->read(block, read.data()));
    CHECK(read == expected);
  }
}

TEST_CASE("what a GPU makes are the numbers of the host") {
  const RandomStream stream(7, "k");
  auto keep = [](float value) { return value; };
  for (uint64_t width : {24, 5}) {
    heddle_random::Block block{stream.start(), (uint64_t(1) << 37) + 3, width, 6, 100, 4096, 2 * 6 * width};
    std::vector<float> made(size_t(block.elements), NAN);
    for (uint64_t n = 0; n * heddle_random::kPerThread < block.elements; ++n)
      heddle_random::make(block, n, made.data(), keep);
    for (uint64_t at = 0; at < block.elements; ++at) {
      const uint64_t batch = at / width / 6, row = at / width % 6;
      REQUIRE(made[at] == stream.normal(block.first + batch * 4096 + row * 100 + at % width));
    }
  }
}

TEST_CASE("the kernel that makes them compiles for every element type") {
  for (DType dtype : {DType::fp32, DType::bf16, DType::fp16})
    for (const char *arch : {"sm_80", "sm_90a"}) {
      const Result<Cubin> cubin = compile(randomKernelSource(dtype), arch);
      if (!cubin && cubin.status().code() == StatusCode::unavailable) {
        MESSAGE("skipped: " << cubin.status().message());
        return;
      }
      REQUIRE_MESSAGE(cubin.isOk(), cubin.status().message());
      CHECK(checkVariant(*cubin).isOk());
    }
}

TEST_CASE("a file of pieces is what one call would write, or nothing") {
  const ScratchFolder scratch;
  const Subject subject = *subjectOf(kWindow, {2, 90, 90, 2, 1, 8, 8});
  const attn::ProblemSizes sizes = subject.sizes();
  const Collected whole = oneCall(subject);
  const std::string path = scratch / "y.safetensors";
  {
    HostMachine machine(subject.part, *subject.source, 1);
    StreamCall call = must(StreamCall::create(requestOf(subject, sizes, 40), machine));
    const std::unique_ptr<PiecesFile> file = must(PiecesFile::create(path, *subject.source, 0));
    must(call.run({file.get()}));
    CHECK_FALSE(std::filesystem::exists(path));
    must(file->publish());
  }
  const SafetensorsFile written = must(SafetensorsFile::open(path));
  CHECK(farthest(must(written.read("out")).toFloats(), whole.out) <= 2e-6);
  CHECK(farthest(must(written.read("lse")).toFloats(), whole.lse) <= 4e-6);
  const size_t files = size_t(std::distance(std::filesystem::directory_iterator(scratch.path()), {}));
  (void)must(PiecesFile::create(path, *subject.source, 0)); // and given up
  CHECK(size_t(std::distance(std::filesystem::directory_iterator(scratch.path()), {})) == files);
  CHECK(must(SafetensorsFile::open(path)).entries().count("out") == 1);
}
