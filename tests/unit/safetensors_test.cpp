// Keeps the promises of compiler/Io/Safetensors.h and AttentionInputs.h: what is read was checked
// completely, what is written appears whole or not at all, every refusal says what was expected.
#include "compiler/Io/AttentionInputs.h"
#include "compiler/Io/Safetensors.h"
#include "compiler/Io/SequenceTensors.h"
#include <csignal>
#include <cstring>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <unistd.h>

using namespace heddle;
namespace fs = std::filesystem;

namespace {

// A folder that is gone with the test.
struct Scratch {
  fs::path folder = fs::temp_directory_path() / ("heddle-io-" + std::to_string(::getpid()));
  Scratch() { fs::create_directories(folder); }
  ~Scratch() { fs::remove_all(folder); }
  std::string path(const std::string &name) const { return (folder / name).string(); }
  size_t fileCount() const {
    size_t count = 0;
    for (const auto &entry : fs::directory_iterator(folder))
      count += entry.exists() ? 1 : 0;
    return count;
  }
};

std::string contents(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void put(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string rawFile(const std::string &header, size_t dataBytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes.push_back(static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i)));
  return bytes + header + std::string(dataBytes, '\1');
}

// The status of opening a file with this header and this many data bytes.
Status openRaw(const Scratch &scratch, const std::string &header, size_t dataBytes) {
  std::string path = scratch.path("raw.safetensors");
  put(path, rawFile(header, dataBytes));
  return SafetensorsFile::open(path).status();
}

bool mentions(const Status &status, const std::string &text) {
  return status.message().find(text) != std::string::npos;
}

std::string entry(const std::string &name, const std::string &dtype, const std::string &shape,
                  const std::string &offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

} // namespace

TEST_CASE("a file of very many tensors is opened") {
  Scratch scratch;
  std::string header = "{";
  constexpr int kTensors = 400000; // a walk over all of them for each would take longer than a test may
  for (int i = 0; i < kTensors; ++i)
    header += (i ? ",\"t" : "\"t") + std::to_string(i) + R"(":{"dtype":"I8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  CHECK(openRaw(scratch, header + "}", kTensors).isOk());
  CHECK(mentions(openRaw(scratch, header + R"(,"t7":{"dtype":"I8","shape":[0],"data_offsets":[0,0]}})", kTensors),
                 "the header names 't7' twice"));
}

TEST_CASE("a shape without elements may have sizes that no product holds") {
  const std::vector<int64_t> huge = {int64_t(1) << 62, 4, 0};
  CHECK(elementsOf(huge) == 0);
  CHECK(elementsOf({int64_t(1) << 62, 2}) == std::nullopt);
  CHECK(bytesOf({int64_t(1) << 61, 2}, 4) == std::nullopt);
  CHECK(bytesOf({(int64_t(1) << 61) - 1, 2}, 2) == std::numeric_limits<int64_t>::max() - 3);
  CHECK(elementsOf({-1, 0}) == std::nullopt);
  CHECK(elementsOf({}) == 1);
  CHECK_THROWS_AS(HostTensor::zeros(DType::bf16, {int64_t(1) << 62, 2, 2}), std::bad_alloc);
  CHECK(HostTensor::zeros(DType::bf16, huge).elements() == 0);

  Scratch scratch;
  const std::string path = scratch.path("huge.safetensors"), shape = "[4611686018427387904,4,0]";
  put(path, rawFile("{" + entry("a", "F32", shape, "[0,0]") + "," + entry("b", "I32", shape, "[0,0]") + "}", 0));
  const Result<SafetensorsFile> file = SafetensorsFile::open(path);
  REQUIRE(file.isOk());
  const HostTensor read = *file->read("a");
  CHECK(read.elements() == 0);
  CHECK(read.toFloats().empty());
  CHECK(file->readOperand("b")->elements() == 0);
  REQUIRE(writeSafetensors(scratch.path("again.safetensors"), {{"a", &read}}).isOk());
  HostTensor wrong;
  wrong.shape = {int64_t(1) << 62, 4}; // whose bytes are 0 in 64 bits
  CHECK(mentions(writeSafetensors(path, {{"a", &wrong}}), "needs more than there are"));
}

TEST_CASE("inputs whose results no memory holds are refused by their sizes, however small their files are") {
  auto without = [](std::vector<int64_t> shape) { return HostTensor::zeros(DType::bf16, std::move(shape)); };
  RoleTensors tensors;
  tensors.q = without({1, 4, 1, 1}), tensors.k = without({1, 0, 1, 1});
  tensors.v = without({1, 0, 1, int64_t(1) << 62});
  CHECK(mentions(makeAttentionInputs(tensors).status(), "expected 0 to 2^31 - 1, got 4611686018427387904"));
  tensors.q = without({1 << 20, 0, 1, 1});
  tensors.k = without({1 << 20, 0, 1 << 20, 1}), tensors.v = without({1 << 20, 0, 1 << 20, 1 << 20});
  CHECK(makeAttentionInputs(tensors).status().code() == StatusCode::invalidArgument); // heads of q and k
  tensors.q = without({1, 1 << 20, 1, 1});
  tensors.k = without({1, 0, 1, 1}), tensors.v = without({1, 0, 1, 1 << 30});
  CHECK(mentions(makeAttentionInputs(tensors).status(), "tensor 'out' [1, 1048576, 1, 1073741824] has more than 2^40"));
  tensors.v = without({1, 0, 1, 8});
  CHECK(makeAttentionInputs(tensors).isOk());
}

TEST_CASE("a header of more values than any file has is refused") {
  Scratch scratch;
  std::string header = R"({"t":[)";
  for (int i = 0; i < 8'100'000; ++i)
    header += "0,";
  CHECK(mentions(openRaw(scratch, header + "0]}", 0), "the header holds too many values to be true"));
}

TEST_CASE("a name that is missing is told with some of those that there are, and none reaches a terminal as it is") {
  Scratch scratch;
  std::string header = "{";
  for (int i = 0; i < 1000; ++i)
    header +=
        (i ? ",\"t\\u001b" : "\"t\\u001b") + std::to_string(i) + R"(":{"dtype":"I8","shape":[0],"data_offsets":[0,0]})";
  put(scratch.path("names.safetensors"), rawFile(header + "}", 0));
  auto file = SafetensorsFile::open(scratch.path("names.safetensors"));
  REQUIRE(file.isOk());
  const Status status = file->read("none\n").status();
  CHECK(mentions(status, "has no tensor 'none\\u000a'; it has 't\\u001b0', 't\\u001b1', "));
  CHECK(mentions(status, " and 970 more"));
}

TEST_CASE("what was written is read back, in every dtype and with empty tensors") {
  Scratch scratch;
  HostTensor wide = HostTensor::fromFloats(DType::fp32, {2, 3}, {1, -2, 3.5f, 0, 1e-30f, -7});
  HostTensor brain = HostTensor::fromFloats(DType::bf16, {3}, {1.5f, -0.25f, 128});
  HostTensor half = HostTensor::fromFloats(DType::fp16, {1, 2, 1}, {0.5f, -65504});
  HostTensor none = HostTensor::zeros(DType::bf16, {4, 0, 2});
  HostTensor scalar = HostTensor::fromFloats(DType::fp32, {}, {42});
  std::string path = scratch.path("all.safetensors");
  std::map<std::string, const HostTensor *> tensors = {
      {"wide", &wide}, {"a", &brain}, {"half", &half}, {"none", &none}, {"s", &scalar}};
  REQUIRE(writeSafetensors(path, tensors, {{"seed", "7"}}).isOk());
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  REQUIRE(file.isOk());
  CHECK(file->entries().size() == 5);
  CHECK(file->metadata().at("seed") == "7");
  for (const auto &expected : tensors) {
    INFO(expected.first);
    Result<HostTensor> read = file->read(expected.first);
    REQUIRE(read.isOk());
    CHECK(read->dtype == expected.second->dtype);
    CHECK(read->shape == expected.second->shape);
    CHECK(read->data == expected.second->data);
  }
  CHECK(scratch.fileCount() == 1);
}

TEST_CASE("the bytes are those of the format: wider elements first, then names, data at a multiple of 8") {
  Scratch scratch;
  HostTensor b = HostTensor::fromFloats(DType::bf16, {1}, {1});
  HostTensor f = HostTensor::fromFloats(DType::fp32, {1}, {1});
  std::string path = scratch.path("x.safetensors");
  REQUIRE(writeSafetensors(path, {{"b", &b}, {"a", &b}, {"z", &f}}).isOk());
  std::string header = "{" + entry("z", "F32", "[1]", "[0,4]") + "," + entry("a", "BF16", "[1]", "[4,6]") + "," +
                       entry("b", "BF16", "[1]", "[6,8]") + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected = rawFile(header, 0) + std::string("\0\0\x80\x3f\x80\x3f\x80\x3f", 8);
  CHECK(contents(path) == expected);
}

TEST_CASE("a file cut short anywhere is refused") {
  Scratch scratch;
  HostTensor t = HostTensor::zeros(DType::fp32, {5});
  std::string path = scratch.path("t.safetensors");
  REQUIRE(writeSafetensors(path, {{"t", &t}}).isOk());
  std::string whole = contents(path);
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    put(path, whole.substr(0, size));
    Status status = SafetensorsFile::open(path).status();
    CHECK(status.code() == StatusCode::corrupt);
  }
  put(path, whole.substr(0, whole.size() - 1));
  CHECK(mentions(SafetensorsFile::open(path).status(),
                 "cut short: tensor 't' ends at byte 20 of the data, the file holds 19"));
}

TEST_CASE("a header that lies is refused, with the reason") {
  Scratch scratch;
  struct Lie {
    std::string header, expected;
    size_t dataBytes;
  };
  std::string t4 = entry("t", "F32", "[1]", "[0,4]");
  for (const Lie &lie : std::initializer_list<Lie>{
           {"[]", "not a JSON object", 0},
           {"{\"t\":", "not a JSON object", 0},
           {"{" + t4 + "," + t4 + "}", "names 't' twice", 4},
           {"{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", "needs a dtype, a shape", 4},
           {"{" + entry("t", "F32", "[-1]", "[0,4]") + "}", "needs a dtype, a shape", 4},
           {"{" + entry("t", "F32", "[1.5]", "[0,4]") + "}", "needs a dtype, a shape", 4},
           {"{" + entry("t", "F32", "[1]", "[4,0]") + "}", "ends before it begins", 4},
           {"{" + entry("t", "F32", "[2]", "[0,4]") + "}", "F32 [2] needs 8 bytes, its data_offsets give 4", 4},
           {"{" + entry("t", "F32", "[4611686018427387904,4]", "[0,0]") + "}", "too large to be true", 0},
           {"{" + t4 + "," + entry("u", "F32", "[1]", "[2,6]") + "}", "overlaps", 6},
           {"{" + t4 + "," + entry("u", "F32", "[1]", "[6,10]") + "}", "a gap", 10},
           {"{" + t4 + "}", "3 bytes behind the last tensor", 7},
           {"{\"__metadata__\":{\"a\":1}," + t4 + "}", "'a' is not a string", 4},
       }) {
    CAPTURE(lie.header);
    Status status = openRaw(scratch, lie.header, lie.dataBytes);
    CHECK(status.code() == StatusCode::corrupt);
    CAPTURE(status.message());
    CHECK(mentions(status, lie.expected));
    CHECK(mentions(status, "raw.safetensors"));
  }
  CHECK(openRaw(scratch, "{" + t4 + "}", 4).isOk());
}

TEST_CASE("a header size beyond the file or the format's limit allocates nothing and is refused") {
  Scratch scratch;
  std::string path = scratch.path("huge.safetensors");
  put(path, std::string(8, '\xff') + "{}");
  CHECK(mentions(SafetensorsFile::open(path).status(), "claims a header of 18446744073709551615 bytes"));
  put(path, std::string("\x40\0\0\0\0\0\0\0{}", 10));
  CHECK(mentions(SafetensorsFile::open(path).status(), "cut short: the header needs 64 bytes, the file holds 2"));
}

TEST_CASE("a tensor of another element type does not spoil the file, reading it does") {
  Scratch scratch;
  std::string path = scratch.path("mixed.safetensors");
  put(path, rawFile("{" + entry("i", "I64", "[1]", "[0,8]") + "," + entry("t", "F32", "[1]", "[8,12]") + "}", 12));
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  REQUIRE(file.isOk());
  CHECK(file->read("t").isOk());
  Status status = file->read("i").status();
  CHECK(status.code() == StatusCode::unsupported);
  CHECK(mentions(status, "tensor 'i' is I64; expected BF16, F16, F32 or F8_E4M3"));
  CHECK(mentions(file->read("q").status(), "has no tensor 'q'; it has 'i', 't'"));
}

TEST_CASE("a missing file and a folder are told apart from a broken file") {
  Scratch scratch;
  CHECK(SafetensorsFile::open(scratch.path("none")).status().code() == StatusCode::notFound);
  CHECK(SafetensorsFile::open(scratch.folder.string()).status().code() == StatusCode::invalidArgument);
  REQUIRE(::mkfifo(scratch.path("pipe").c_str(), 0600) == 0);
  CHECK(SafetensorsFile::open(scratch.path("pipe")).status().code() == StatusCode::invalidArgument); // not waited for
}

TEST_CASE("a failed write leaves the old file and no other") {
  Scratch scratch;
  std::string path = scratch.path("keep.safetensors");
  put(path, "old");
  HostTensor broken = HostTensor::zeros(DType::fp32, {4});
  broken.data.resize(3);
  CHECK(writeSafetensors(path, {{"t", &broken}}).code() == StatusCode::invalidArgument);
  CHECK(contents(path) == "old");
  CHECK(scratch.fileCount() == 1);
  HostTensor good = HostTensor::zeros(DType::fp32, {4});
  CHECK(writeSafetensors(scratch.path("missing/x"), {{"t", &good}}).code() == StatusCode::io);
  CHECK(writeSafetensors(scratch.folder.string(), {{"t", &good}}).code() == StatusCode::invalidArgument);
  CHECK(writeSafetensors("/dev/null", {{"t", &good}}).code() == StatusCode::invalidArgument);
  CHECK(writeSafetensors(path, {{"__metadata__", &good}}).code() == StatusCode::invalidArgument);
  CHECK(contents(path) == "old");
}

TEST_CASE("a link is followed, not replaced") {
  Scratch scratch;
  std::string link = scratch.path("link.safetensors"), real = scratch.path("real.safetensors");
  put(real, "old");
  fs::create_symlink(real, link);
  HostTensor tensor = HostTensor::zeros(DType::fp32, {4});
  REQUIRE(writeSafetensors(link, {{"t", &tensor}}).isOk());
  CHECK(fs::is_symlink(link));
  CHECK(SafetensorsFile::open(real).isOk());
}

TEST_CASE("a write that the system cuts off leaves the old file and no other") {
  Scratch scratch;
  std::string path = scratch.path("keep.safetensors");
  put(path, "old");
  HostTensor large = HostTensor::zeros(DType::fp32, {1 << 16});
  struct rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  struct rlimit small = before;
  small.rlim_cur = 1 << 12;
  std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  Status status = writeSafetensors(path, {{"t", &large}});
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK(status.code() == StatusCode::io);
  CHECK(mentions(status, "keep.safetensors': write: "));
  CHECK(contents(path) == "old");
  CHECK(scratch.fileCount() == 1);
}

TEST_CASE("attention inputs: shapes and dtypes that do not fit name the tensor and what was expected") {
  HostTensor q = HostTensor::zeros(DType::bf16, {2, 5, 4, 8});
  HostTensor k = HostTensor::zeros(DType::bf16, {2, 7, 2, 8});
  HostTensor v = HostTensor::zeros(DType::bf16, {2, 7, 2, 16});
  Result<AttentionInputs> inputs = makeAttentionInputs({q, k, v});
  REQUIRE(inputs.isOk());
  const AttentionSizes &s = inputs->sizes;
  CHECK(std::vector<int64_t>{s.batch, s.seqlenQ, s.seqlenK, s.heads, s.kvHeads, s.headDim, s.valueDim} ==
        std::vector<int64_t>{2, 5, 7, 4, 2, 8, 16});

  CHECK(mentions(makeAttentionInputs({HostTensor::zeros(DType::bf16, {5, 4, 8}), k, v}).status(),
                 "tensor 'q' is bf16 [5, 4, 8]; expected [batch, seqlen_q, heads, head_dim]"));
  CHECK(mentions(makeAttentionInputs({q, HostTensor::zeros(DType::fp16, {2, 7, 2, 8}), v}).status(),
                 "k: dtype: expected bf16 as q, got fp16"));
  CHECK(mentions(makeAttentionInputs({q, HostTensor::zeros(DType::bf16, {2, 7, 2, 4}), v}).status(),
                 "k: size of dim: expected 8, got 4"));
  CHECK(mentions(makeAttentionInputs({q, k, HostTensor::zeros(DType::bf16, {2, 6, 2, 8})}).status(),
                 "v: size of row: expected 7, got 6"));
  HostTensor threeHeads = HostTensor::zeros(DType::bf16, {2, 7, 3, 8});
  CHECK(mentions(makeAttentionInputs({q, threeHeads, threeHeads}).status(),
                 "k: size of head: expected a divisor of the 4 query heads, got 3"));
  HostTensor none = HostTensor::zeros(DType::bf16, {2, 7, 0, 8});
  CHECK(mentions(makeAttentionInputs({q, none, none}).status(),
                 "tensor 'k' is bf16 [2, 7, 0, 8]; expected at least one head"));
}

TEST_CASE("files have a tensor for each role that every call of a kind reads or writes, in the shape of the table") {
  Scratch scratch;
  const AttentionSizes sizes{2, 5, 7, 4, 2, 8, 16, 6, 4, 3, 2};
  for (const Kind &kind : Kind::all()) {
    CAPTURE(kind.name());
    const Result<AttentionInputs> made = randomAttentionInputs(sizes, DType::bf16, 1, kind);
    REQUIRE(made.isOk());
    const AttentionInputs &inputs = *made;
    RoleTensors results;
    for (const RoleSpec &role : rolesOf(kind, Access::write))
      results.of(role.role) = HostTensor::zeros(DType::fp32, sizes.shapeOf(role));
    for (Access access : {Access::read, Access::write}) {
      const std::string path = scratch.path("of_roles.safetensors");
      REQUIRE(
          (access == Access::read ? writeAttentionInputs(path, inputs, 1) : writeAttentionOutputs(path, results, kind))
              .isOk());
      Result<SafetensorsFile> file = SafetensorsFile::open(path);
      REQUIRE(file.isOk());
      const std::vector<RoleSpec> roles = access == Access::read ? inputs.given() : rolesOf(kind, access);
      CHECK(file->entries().size() == roles.size());
      for (const RoleSpec &role : roles)
        CHECK(file->read(role.name, &ElementTraits::isKnown)->shape == sizes.shapeOf(role));
    }
  }
  CHECK(sizes.shapeOf(specOf(Role::lse)) == std::vector<int64_t>{2, 4, 5});
  CHECK(sizes.shapeOf(specOf(Role::out)) == std::vector<int64_t>{2, 5, 4, 16});
}

TEST_CASE("inputs of a backward pass may lack what a forward call writes, and the gradient of lse") {
  Scratch scratch;
  const std::string path = scratch.path("backward.safetensors");
  const AttentionSizes sizes{2, 5, 7, 4, 2, 8, 16};
  const Kind kind = {KindBase::backward};
  for (const std::vector<Role> &also : {std::vector<Role>{}, std::vector<Role>{Role::dLse}}) {
    AttentionInputs inputs = *randomAttentionInputs(sizes, DType::bf16, 1, kind, {also});
    CHECK(inputs.given().size() == 4 + also.size());
    CHECK(inputs.isGiven(Role::dLse) == !also.empty());
    REQUIRE(writeAttentionInputs(path, inputs, 1).isOk());
    const Result<AttentionInputs> read = readAttentionInputs(path, kind);
    REQUIRE(read.isOk());
    CHECK(read->given().size() == inputs.given().size());
    if (!also.empty())
      CHECK(read->dLse.dtype == DType::fp32);
  }
  AttentionInputs inputs = *randomAttentionInputs(sizes, DType::bf16, 1, kind);
  inputs.lse = HostTensor::zeros(DType::bf16, {2, 4, 5});
  CHECK(mentions(makeAttentionInputs(inputs, kind).status(), "lse: dtype: expected fp32, got bf16"));
  inputs.lse = HostTensor::zeros(DType::fp32, {2, 4, 6});
  CHECK(mentions(makeAttentionInputs(inputs, kind).status(), "tensor 'lse' is fp32 [2, 4, 6]; expected [2, 4, 5]"));
  inputs.lse = {};
  inputs.dOut = {};
  CHECK(mentions(makeAttentionInputs(inputs, kind).status(), "tensor 'd_out'"));
}

TEST_CASE("attention inputs survive the way through a file, and the file's name is in the message") {
  Scratch scratch;
  std::string path = scratch.path("qkv.safetensors");
  Result<AttentionInputs> made = randomAttentionInputs({1, 3, 5, 4, 2, 8, 8}, DType::fp16, 11);
  REQUIRE(made.isOk());
  REQUIRE(writeAttentionInputs(path, *made, 11).isOk());
  Result<AttentionInputs> read = readAttentionInputs(path);
  REQUIRE(read.isOk());
  CHECK(read->q.data == made->q.data);
  CHECK(read->k.data == made->k.data);
  CHECK(read->v.data == made->v.data);

  HostTensor flat = HostTensor::zeros(DType::fp16, {3});
  REQUIRE(writeSafetensors(path, {{"q", &flat}, {"k", &flat}, {"v", &flat}}).isOk());
  CHECK(mentions(readAttentionInputs(path).status(), "qkv.safetensors': tensor 'q' is fp16 [3]"));
  CHECK(randomAttentionInputs({1, -3, 5, 4, 2, 8, 8}, DType::fp16, 1).status().code() == StatusCode::invalidArgument);
  CHECK(randomAttentionInputs({int64_t(1) << 20, int64_t(1) << 20, 5, 4, 2, 8, 8}, DType::fp16, 1).status().code() ==
        StatusCode::invalidArgument);
}

TEST_CASE("calls on pages: tables and lengths of a file name keys that there are, and survive the way through it") {
  Scratch scratch;
  const std::string path = scratch.path("pages.safetensors");
  const Kind kind = {KindBase::decode};
  AttentionSizes sizes{3, 2, 0, 4, 2, 8, 8, 12, 16, 4};
  AttentionInputs inputs = *randomAttentionInputs(sizes, DType::fp16, 7, kind);
  CHECK(inputs.sizes.seqlenK == 64);
  REQUIRE(writeAttentionInputs(path, inputs, 7).isOk());
  const Result<AttentionInputs> read = readAttentionInputs(path, kind);
  REQUIRE_MESSAGE(read.isOk(), read.status().message());
  CHECK(read->pageTable.data == inputs.pageTable.data);
  CHECK(read->sequsedK.data == inputs.sequsedK.data);
  CHECK(read->k.shape == std::vector<int64_t>{12, 16, 2, 8});
  const auto refusal = [&](Role role, int64_t place, int32_t value) {
    AttentionInputs changed = inputs;
    std::memcpy(changed.of(role).data.data() + 4 * place, &value, sizeof value);
    return makeAttentionInputs(changed, kind).status();
  };
  CHECK(
      mentions(refusal(Role::sequsedK, 1, 65), "seqused_k: sequence 1: expected 0 to 64 keys, 4 pages of 16, got 65"));
  CHECK(mentions(refusal(Role::pageTable, 2, 12), "page_table: sequence 0, page 2: expected 0 to 11, got 12"));
  inputs.pageTable = HostTensor::zeros(DType::fp32, {3, 4});
  CHECK(mentions(makeAttentionInputs(inputs, kind).status(), "page_table: dtype: expected i32, got fp32"));
}

TEST_CASE("calls of sequences: lists of pages for each kv head, and keys in rows") {
  Scratch scratch;
  const std::string path = scratch.path("lists.safetensors");
  const Kind kind = {KindBase::decode};
  AttentionSizes sizes{3, 2, 0, 4, 2, 8, 8, 12, 16, 4, 3, 2};
  AttentionInputs lists = *randomAttentionInputs(sizes, DType::fp16, 7, kind);
  CHECK(lists.pageTable.shape == std::vector<int64_t>{2, 3, 4});
  CHECK(lists.sequsedK.shape == std::vector<int64_t>{2, 3});
  REQUIRE(writeAttentionInputs(path, lists, 7).isOk());
  CHECK(readAttentionInputs(path, kind)->sizes.tables == 2);
  lists.sequsedK = HostTensor::zeros(DType::i32, {3});
  CHECK(mentions(makeAttentionInputs(lists, kind).status(), "tensor 'seqused_k' is i32 [3]; expected [2, 3]"));
  lists.pageTable = HostTensor::zeros(DType::i32, {4, 3, 4}), lists.sequsedK = HostTensor::zeros(DType::i32, {4, 3});
  CHECK(mentions(makeAttentionInputs(lists, kind).status(), "tables: expected 0, 1 or 2, the heads of k, got 4"));

  sizes.tables = 1, sizes.pages = 1, sizes.pageSize = 60, sizes.maxPages = 0;
  AttentionInputs rows = *randomAttentionInputs(sizes, DType::fp16, 7, kind, {{Role::cuSeqlensK}, {}});
  CHECK(!rows.isGiven(Role::pageTable));
  CHECK(rows.cuSeqlensK.shape == std::vector<int64_t>{4});
  CHECK(rows.cuSeqlensK.get(1) == 20);
  CHECK(rows.sequsedK.get(0) == 20);
  REQUIRE(writeAttentionInputs(path, rows, 7).isOk());
  CHECK(readAttentionInputs(path, kind)->sizes.sequences == 3);
  rows.sequsedK = {};
  CHECK(makeAttentionInputs(rows, kind).isOk());
  rows.pageTable = HostTensor::zeros(DType::i32, {3, 4});
  CHECK(mentions(makeAttentionInputs(rows, kind).status(), "'page_table' or 'cu_seqlens_k', not both"));
  rows.pageTable = {}, rows.cuSeqlensK = {};
  CHECK(mentions(makeAttentionInputs(rows, kind).status(), "page_table"));
}

TEST_CASE(
    "lengths of sequences are between two numbers, and tables for them name no page twice while there is another") {
  const HostTensor lengths = randomLengthsBetween({50}, 3, 90, 1);
  CHECK(lengths.shape == std::vector<int64_t>{50});
  std::set<double> seen;
  int64_t needed = 0;
  for (int64_t s = 0; s < 50; ++s) {
    seen.insert(lengths.get(s));
    needed += (int64_t(lengths.get(s)) + 15) / 16;
  }
  CHECK((*seen.begin() >= 3 && *seen.rbegin() <= 90 && seen.size() > 20));
  CHECK(randomLengthsBetween({2}, 7, 7, 1).get(1) == 7);
  for (int64_t pages : {needed, needed / 3}) {
    const PageSizes sizes{50, pages, 16, 6};
    const HostTensor table = pageTableOf(sizes, lengths, 1);
    CHECK(checkPageTable(sizes, table, lengths).isOk());
    std::map<double, int64_t> uses;
    for (int64_t s = 0; s < 50; ++s)
      for (int64_t number = 0; number * 16 < int64_t(lengths.get(s)); ++number)
        ++uses[table.get(s * 6 + number)];
    CHECK(int64_t(uses.size()) == pages);
    for (const auto &[page, count] : uses)
      CHECK((count == needed / pages || count == needed / pages + 1));
  }
}
