// What calls refuse, by the table of tests/data/arguments/bad.txt: launches, on the recording driver, and calls on this
// machine's processors have the same status and the same words, and nothing was launched or written.
// tests/python/test_arguments.py reads the same table.
#include "support/Places.h"
#include "fake_cuda/FakeCuda.h"
#include "library_fixture.h"
#include "runtime/Include/heddle.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <vector>

using namespace heddle::test;
namespace api = heddle::api;

namespace {

std::string readText(const std::string &path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);)
    parts.push_back(part);
  return parts;
}

std::string trimmed(const std::string &text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

struct BadCall {
  std::string kind, pattern, change;
  int status;
  std::string words, doors;
};

std::vector<BadCall> badCalls(const std::string &door) {
  std::vector<BadCall> calls;
  for (const std::string &line : split(readText(places().arguments + "/bad.txt"), '\n')) {
    const std::vector<std::string> cells = split(line, '|');
    if (line.empty() || line[0] == '#')
      continue;
    REQUIRE_MESSAGE(cells.size() == 6, line);
    if (cells[5].find(door) != std::string::npos)
      calls.push_back({trimmed(cells[0]), trimmed(cells[1]), trimmed(cells[2]), std::stoi(cells[3]), trimmed(cells[4]),
                       trimmed(cells[5])});
  }
  REQUIRE(calls.size() > 30);
  return calls;
}

std::vector<int64_t> numbersIn(const std::string &list) {
  std::vector<int64_t> numbers;
  for (const std::string &number : split(list, ','))
    numbers.push_back(std::stoll(number));
  return numbers;
}

// A tensor of integers of a pattern, or one of its sizes.
struct Argument {
  int32_t id;
  std::vector<int64_t> values; // of a size one
  int64_t length;              // of a tensor; below 0: a size
  int64_t bytes = 4;
  int times = 1;
  bool isNull = false;

  bool isTensor() const { return length != kSize; }
  static constexpr int64_t kSize = INT64_MIN;
};

std::map<std::string, Argument> argumentsOf(const std::string &pattern) {
  if (pattern == "near")
    return {{"left", {0, {7}, Argument::kSize}}};
  if (pattern == "tree")
    return {{"ancestors", {0, {1, 3, 7, 15, 31}, 5, 8}}};
  if (pattern == "trees")
    return {{"trees", {0, {1, 3, 7, 15, 31}, 5, 8}}, {"drafts", {1, {5}, 1}}};
  if (pattern == "lists")
    return {{"offsets", {0, std::vector<int64_t>(25, 0), 25}}, {"indices", {1, {0}, 1}}};
  return {{"cu_q", {0, {0, 10, 24}, 3}}, {"cu_k", {1, {0, 15, 40}, 3}}, {"used", {2, {15, 20}, 2}}};
}

constexpr size_t kRoom = 1 << 17; // bytes from one tensor to the next

// The call that the table changes, in memory at `base`.
class Call {
public:
  Call(const BadCall &bad, char *base) : base(base), arguments(argumentsOf(bad.pattern)) {
    args.struct_size = sizeof args;
    const int64_t dim = 64;
    const bool isCascade = bad.kind == "cascade",
               isDecode = isCascade || bad.kind.rfind("decode", 0) == 0; // 40 keys in 3 pages of 16
    const std::array<int64_t, 4> ofKeys = {isDecode ? 3 : 1, isDecode ? 16 : 40, 2, dim};
    place("q", args.q, {1, 24, 4, dim});
    place("k", args.k, ofKeys);
    place("v", args.v, ofKeys);
    place("out", args.out, {1, 24, 4, dim});
    args.lse = reinterpret_cast<float *>(next("lse"));
    if (isDecode) {
      args.page_table = integers("page_table", {2, 0, 1}), args.seqused_k = integers("seqused_k", {40});
      args.max_pages = 3;
      args.shared_k = isCascade ? integers("shared_k", {0}) : nullptr;
    } else if (bad.kind != "forward") {
      place("d_out", args.d_out, {1, 24, 4, dim});
      place("d_q", args.d_q, {1, 24, 4, dim}, HEDDLE_FP32);
      place("d_k", args.d_k, {1, 40, 2, dim}, HEDDLE_FP32);
      place("d_v", args.d_v, {1, 40, 2, dim}, HEDDLE_FP32);
    }
    for (const auto &[name, argument] : arguments)
      if (argument.isTensor())
        next(name);
    std::istringstream changes(bad.change);
    for (std::string word; changes >> word;)
      change(word);
    end = used;
    bind();
  }

  size_t bytes() const { return end + kRoom; }

  // The integers of its tensors; `base` is memory of this process.
  void fill() {
    for (const auto &[name, values] : sequences)
      std::memcpy(addresses.at(name), values.data(), values.size() * sizeof(int32_t));
    for (const auto &[name, argument] : arguments)
      for (size_t i = 0; argument.isTensor() && i < argument.values.size(); ++i)
        std::memcpy(addresses.at(name) + i * size_t(argument.bytes), &argument.values[i], size_t(argument.bytes));
  }

  heddle_attention_args args = {};

private:
  char *next(const std::string &name) {
    used += kRoom;
    return addresses[name] = base + used;
  }

  const int32_t *integers(const std::string &name, std::vector<int32_t> values) {
    sequences[name] = std::move(values);
    return reinterpret_cast<const int32_t *>(next(name));
  }

  // Of kinds decode and cascade: their integers and sizes.
  bool changeSequences(const std::string &name, const std::string &to) {
    const std::map<std::string, const int32_t **> arrays = {
        {"page_table", &args.page_table},     {"seqused_k", &args.seqused_k},
        {"cu_seqlens_k", &args.cu_seqlens_k}, {"kv_indptr", &args.kv_indptr},
        {"kv_indices", &args.kv_indices},     {"kv_last_page_len", &args.kv_last_page_len},
        {"shared_k", &args.shared_k}};
    const std::map<std::string, int32_t *> sizes = {{"page_size", &args.page_size},
                                                    {"max_pages", &args.max_pages},
                                                    {"tables", &args.tables},
                                                    {"sequences", &args.sequences}};
    if (sizes.count(name)) {
      *sizes.at(name) = std::stoi(to);
    } else if (arrays.count(name)) {
      std::vector<int32_t> values;
      for (int64_t value : to == "null" ? std::vector<int64_t>() : numbersIn(to))
        values.push_back(int32_t(value));
      *arrays.at(name) = to == "null" ? nullptr : integers(name, values);
    }
    return sizes.count(name) || arrays.count(name);
  }

  void place(const char *name, heddle_tensor &tensor, const std::array<int64_t, 4> &size,
             heddle_dtype dtype = HEDDLE_FP16) {
    tensor = api::contiguous(next(name), dtype, size);
  }

  heddle_tensor &tensorOf(const std::string &name) {
    const std::map<std::string, heddle_tensor *> tensors = {
        {"q", &args.q},         {"k", &args.k},     {"v", &args.v},     {"out", &args.out},
        {"d_out", &args.d_out}, {"d_q", &args.d_q}, {"d_k", &args.d_k}, {"d_v", &args.d_v}};
    REQUIRE_MESSAGE(tensors.count(name), name);
    return *tensors.at(name);
  }

  void change(const std::string &word) {
    const size_t at = word.find_first_of("=@*");
    REQUIRE_MESSAGE(at != std::string::npos, word);
    const std::string what = word.substr(0, at), to = word.substr(at + 1);
    if (word[at] == '@')
      move(what, to);
    else if (word[at] == '*')
      setLength(arguments.at(what), std::stoll(to));
    else if (arguments.count(what))
      setArgument(arguments.at(what), to);
    else if (what.find('.') != std::string::npos)
      changeTensor(split(what, '.'), to);
    else
      changeField(what, to);
  }

  void move(const std::string &name, const std::string &to) {
    const size_t plus = to.find('+');
    char *address = addresses.at(to.substr(0, plus)) + std::stoll(to.substr(plus + 1));
    addresses[name] = address;
    if (name == "lse")
      args.lse = reinterpret_cast<float *>(address);
    else
      tensorOf(name).ptr = address;
  }

  static void setLength(Argument &argument, int64_t length) {
    argument.length = length;
    argument.values.resize(size_t(std::max<int64_t>(length, 0)), argument.values.empty() ? 0 : argument.values.back());
  }

  static void setArgument(Argument &argument, const std::string &to) {
    if (to == "none" || to == "twice")
      argument.times = to == "none" ? 0 : 2;
    else if (to == "null")
      argument.isNull = true;
    else
      argument.values = numbersIn(to);
    if (argument.isTensor())
      argument.length = int64_t(argument.values.size());
  }

  void changeTensor(const std::vector<std::string> &path, const std::string &to) {
    heddle_tensor &tensor = tensorOf(path[0]);
    if (path[1] == "reserved") {
      tensor.reserved = std::stoi(to);
    } else if (path[1] == "dtype") {
      const std::map<std::string, int> codes = {{"bf16", HEDDLE_BF16}, {"fp16", HEDDLE_FP16}, {"fp32", HEDDLE_FP32}};
      tensor.dtype = codes.count(to) ? codes.at(to) : 77;
    } else {
      const std::vector<std::string> dims = {"batch", "row", "head", "dim"};
      const auto dim = size_t(std::find(dims.begin(), dims.end(), path[2]) - dims.begin());
      REQUIRE(dim < dims.size());
      (path[1] == "size" ? tensor.size : tensor.stride)[dim] = std::stoll(to);
      if (path[1] == "size")
        tensor.stride[2] = tensor.size[3], tensor.stride[1] = tensor.size[2] * tensor.stride[2],
        tensor.stride[0] = tensor.size[1] * tensor.stride[1];
    }
  }

  void changeField(const std::string &name, const std::string &to) {
    if (changeSequences(name, to))
      return;
    if (name == "struct_size" || name == "flags")
      (name == "flags" ? args.flags : args.struct_size) = uint32_t(std::stoul(to));
    else if (name == "rng_seed")
      args.rng_seed = std::stoull(to);
    else if (name == "scale")
      args.scale = to == "nan" ? NAN : std::stof(to);
    else if (name == "q_origin" || name == "k_origin")
      (name == "q_origin" ? args.q_origin : args.k_origin) = std::stoll(to);
    else if (name == "carry_out")
      args.carry_out = reinterpret_cast<const float *>(base);
    else
      tensorOf(name).ptr = nullptr;
  }

  void bind() {
    for (const auto &[name, argument] : arguments)
      for (int i = 0; i < argument.times; ++i) {
        if (argument.isTensor()) {
          heddle_operand &pointer = operands.emplace_back();
          pointer = {argument.id, HEDDLE_OPERAND_POINTER, {}};
          pointer.value.ptr = argument.isNull ? nullptr : addresses.at(name);
        }
        if (argument.isTensor() && i > 0) // the pointer alone is given twice
          continue;
        heddle_operand &size = operands.emplace_back();
        size = {argument.id, HEDDLE_OPERAND_INT, {}};
        size.value.i64 = argument.isTensor() ? argument.length : argument.values[0];
      }
    for (const auto &[name, argument] : arguments)
      if (argument.isTensor() && argument.times == 0)
        operands.push_back({argument.id, HEDDLE_OPERAND_INT, {}}), operands.back().value.i64 = argument.length;
    args.operands = operands.data(), args.operand_count = operands.size();
  }

  char *base;
  size_t used = 0, end = 0;
  std::map<std::string, Argument> arguments;
  std::map<std::string, char *> addresses;
  std::map<std::string, std::vector<int32_t>> sequences;
  std::vector<heddle_operand> operands;
};

PatternHandle patternOf(const std::string &name) {
  heddle_pattern *pattern = nullptr;
  CHECK_OK(
      heddle_pattern_parse(readText(places().arguments + "/patterns.mlir").c_str(), nullptr, name.c_str(), &pattern));
  return PatternHandle(pattern);
}

heddle_status onCpu(const heddle_pattern *pattern, const std::string &kind, const heddle_attention_args &args) {
  return heddle_cpu_run(pattern, kind.c_str(), &args, 1);
}

int launches() {
  int count = 0;
  heddle::fake::fakeCudaLaunches(&count);
  return count;
}

// The kernels of the table's calls, each compiled once.
class Kernels {
public:
  Kernels() {
    setenv("HEDDLE_CUDA_DRIVER_LIBRARY", places().fakeCuda, 1);
    heddle::fake::fakeCudaReset();
    heddle_device *opened = nullptr;
    CHECK_OK(heddle_device_open(0, &opened));
    device.reset(opened);
    compiler = openCompiler(folder / "kernels.db");
  }

  // Null, with the reason, where there is no NVRTC.
  const heddle_kernel *find(const BadCall &call) {
    KernelHandle &kernel = kernels[call.kind + " " + call.pattern];
    if (kernel)
      return kernel.get();
    heddle_problem problem = smallProblem();
    problem.kind = call.kind.c_str();
    problem.dtype = HEDDLE_FP16;
    problem.heads = problem.kv_heads = problem.seqlen_q = problem.seqlen_k = 0;
    problem.batch = 0;
    heddle_kernel *found = nullptr;
    const heddle_status status =
        heddle_compiler_kernel(compiler.get(), device.get(), patternOf(call.pattern).get(), &problem, 0, &found);
    if (status == HEDDLE_UNAVAILABLE)
      MESSAGE("skipped: " << heddle_last_message());
    else
      REQUIRE_MESSAGE(status == HEDDLE_OK, std::string(heddle_last_message()));
    kernel.reset(found);
    return found;
  }

private:
  ScratchFolder folder;
  DeviceHandle device;
  CompilerHandle compiler;
  std::map<std::string, KernelHandle> kernels;
};

char *const kDeviceBase = reinterpret_cast<char *>(uintptr_t(0x10000000));

constexpr const char *kInLists = "tables=2 page_table=2,0,1,0,1,2 seqused_k=40,3";
constexpr const char *kInRows = "k.size.batch=1 k.size.row=40 v.size.batch=1 v.size.row=40 max_pages=0 page_table=null "
                                "seqused_k=null cu_seqlens_k=0,40";
constexpr const char *kInIndices = "page_table=null seqused_k=null kv_indptr=0,3 kv_indices=2,0,1 kv_last_page_len=8";
const std::vector<BadCall> kGoodCalls = {{"forward", "near", "", 0, "", ""},
                                         {"forward", "tree", "", 0, "", ""},
                                         {"forward", "trees", "", 0, "", ""},
                                         {"decode", "trees", "", 0, "", ""},
                                         {"forward", "packed", "", 0, "", ""},
                                         {"forward", "lists", "", 0, "", ""},
                                         {"backward_accumulate", "near", "", 0, "", ""},
                                         {"decode", "near", "", 0, "", ""},
                                         {"decode", "near", kInLists, 0, "", ""},
                                         {"decode", "near", kInRows, 0, "", ""},
                                         {"decode", "near", kInIndices, 0, "", ""},
                                         {"decode_invariant", "near", "", 0, "", ""},
                                         {"cascade", "near", "", 0, "", ""},
                                         {"cascade", "near", kInIndices, 0, "", ""},
                                         {"backward_accumulate", "packed", "", 0, "", ""}};

void giveWorkspace(const heddle_kernel *kernel, heddle_attention_args &args) {
  uint64_t bytes = 0;
  if (heddle_kernel_workspace(kernel, &args, &bytes) == HEDDLE_OK && bytes > 0)
    args.workspace = kDeviceBase + (int64_t(1) << 32), args.workspace_bytes = bytes;
}

} // namespace

TEST_CASE("the call that the table of bad arguments changes is served on the CPU") {
  for (const BadCall &good : kGoodCalls) {
    INFO(good.kind << " of " << good.pattern);
    std::vector<char> memory(1 << 22);
    Call call(good, memory.data());
    call.fill();
    CHECK_OK(onCpu(patternOf(good.pattern).get(), good.kind, call.args));
  }
}

TEST_CASE("[3] [5] the table of bad arguments is refused on the CPU, and nothing is written") {
  for (const BadCall &bad : badCalls("cpu")) {
    INFO(bad.kind << " of " << bad.pattern << ": " << bad.change);
    std::vector<char> memory(1 << 22);
    Call call(bad, memory.data());
    REQUIRE(call.bytes() <= memory.size());
    call.fill();
    const std::vector<char> before = memory;
    CHECK_REFUSED(onCpu(patternOf(bad.pattern).get(), bad.kind, call.args), bad.status, bad.words);
    CHECK_REFUSED(heddle_cpu_check(patternOf(bad.pattern).get(), bad.kind.c_str(), &call.args), bad.status, bad.words);
    CHECK(memory == before);
  }
}

TEST_CASE("[3] [5] the table of bad arguments is refused by launches, and nothing is launched") {
  Kernels kernels;
  for (const BadCall &good : kGoodCalls) {
    INFO(good.kind << " of " << good.pattern);
    const heddle_kernel *kernel = kernels.find(good);
    if (!kernel)
      return;
    uint64_t bytes = 0;
    Call call(good, kDeviceBase);
    CHECK_OK(heddle_kernel_workspace(kernel, &call.args, &bytes));
  }
  for (const BadCall &bad : badCalls("launch")) {
    INFO(bad.kind << " of " << bad.pattern << ": " << bad.change);
    const heddle_kernel *kernel = kernels.find(bad);
    Call call(bad, kDeviceBase);
    giveWorkspace(kernel, call.args);
    const int before = launches();
    heddle_prepared *prepared = nullptr;
    CHECK_REFUSED(heddle_kernel_launch(kernel, nullptr, &call.args), bad.status, bad.words);
    CHECK_REFUSED(heddle_prepare(kernel, &call.args, &prepared), bad.status, bad.words);
    CHECK(prepared == nullptr);
    CHECK(launches() == before);
  }
}
