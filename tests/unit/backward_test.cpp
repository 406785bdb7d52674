// Gradients: their definition against finite differences of that of the forward pass, and the CPU target against their
// definition, for every score op, every kind of softmax and every pattern of the library.
#include "support/GradientCall.h"

#include <doctest/doctest.h>
#include <map>

using namespace heddle;
using namespace heddle::test;

namespace {

/// Scores %t over the mask %m.
std::string chainText(const std::string &chain, const std::string &arguments = "", const std::string &mask = "causal",
                      const std::string &end = "") {
  return "attn.pattern @p(" + arguments + ") {\n%m = attn." + mask + "\n%s = attn.scaled\n" + chain +
         "\nattn.softmax union(%m) of %t " + end + "\n}";
}
std::string mapText(const std::string &body) {
  return "%t = attn.score_map %s {\n^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32):\n" + body +
         "\nattn.yield %y : f32\n}";
}

/// Documents of different numbers of queries and keys; `rest`: further arguments and what follows them.
std::string documentsText(const std::string &chain, const std::string &rest) {
  return "attn.pattern @p(%cu_q: memref<?xi32>, %cu_k: memref<?xi32>" + rest +
         " {\n%w = attn.window [30, 2]\n%m = attn.documents %w at %cu_q, %cu_k : memref<?xi32>, memref<?xi32>\n"
         "%s = attn.scaled\n" +
         chain + "\nattn.softmax union(%m) of %t\n}";
}

const std::vector<std::pair<const char *, std::string>> &texts() {
  const std::string two = "attn.pattern @p() {\n%a = attn.window [2, 0]\n%b = attn.stride k by 2 at 0\n"
                          "%c = attn.causal\n%d = attn.and %b, %c\nattn.softmax lse(%a, %d) ";
  static const std::vector<std::pair<const char *, std::string>> list = {
      {"full", unionText("%m = attn.full")},
      {"causal", unionText("%m = attn.causal")},
      {"rows without keys", unionText("%m = attn.box [1, 3, 2, 6]")},
      {"softcap", chainText("%t = attn.softcap %s by 0.8")},
      {"run-time softcap",
       chainText("%t = attn.softcap %s by %cap", "%cap: f32 {attn.default = 1.5 : f32, attn.min = 0.1 : f32}")},
      {"alibi", chainText("%t = attn.alibi %s", "", "full")},
      {"bias", chainText("%t = attn.bias %s, %bias : memref<1x?x?x?xf32>", "%bias: memref<1x?x?x?xf32>")},
      {"relative, then softcap",
       chainText("%u = attn.relative %s, %table at [3] : memref<?x9xf32>\n%t = attn.softcap %u by 1.0",
                 "%table: memref<?x9xf32>")},
      {"softcap, then bias", chainText("%u = attn.softcap %s by 0.7\n%t = attn.bias %u, %bias : memref<?x1x1x?xbf16>",
                                       "%bias: memref<?x1x1x?xbf16>")},
      {"a map", chainText(mapText("%c = arith.constant 0.5 : f32\n%w = arith.mulf %x, %c : f32\n%v = math.sin %w : "
                                  "f32\n%e = math.exp %v : f32\n%y = arith.addf %e, %x : f32"))},
      {"a map with a kink", chainText(mapText("%c = arith.constant 0.05 : f32\n%y = arith.maximumf %x, %c : f32"))},
      {"a map that masks",
       chainText(
           mapText("%o = arith.addi %q, %k : i32\n%one = arith.constant 1 : i32\n%r = arith.andi %o, %one : i32\n%zero "
                   "= arith.constant 0 : i32\n%odd = arith.cmpi ne, %r, %zero : i32\n%never = arith.constant "
                   "0xFF800000 : f32\n%g = math.exp %x : f32\n%y = arith.select %odd, %never, %g : f32"),
           "", "full")},
      {"sink", chainText("%t = attn.softcap %s by 2.0", "", "window [1, 0]", "sink 0.25")},
      {"sinks of heads",
       "attn.pattern @p(%l: memref<?xf32>) {\n%m = attn.causal\nattn.softmax union(%m) sink %l : memref<?xf32>\n}"},
      {"branches", two + "gradient(full)\n}"},
      {"detached branches", two + "gradient(detached)\n}"},
      {"detached branches with a sink", two + "sink -0.5 gradient(detached)\n}"},
      {"heads apart",
       unionText(
           "%a = attn.window [1, 0]\n%c = attn.causal\n%b = attn.dilate %c by 2 rule(every)\n%m = attn.heads %a, %b")},
      {"a map of numbers",
       chainText(
           "%t = attn.score_map %s with %heat, %far : f32, f32 {\n^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: "
           "i32, %c: f32, %d: f32):\n%y = arith.divf %x, %c : f32\n%e = math.exp %d : f32\n%i = arith.sitofp %k : "
           "i32 to f32\n%f = arith.mulf %e, %i : f32\n%z = arith.subf %y, %f : f32\nattn.yield %z : f32\n}",
           "%heat: f32 {attn.default = 0.7 : f32}, %far: f32 {attn.default = -2.0 : f32}")},
      {"a run-time sink of detached branches",
       "attn.pattern @p(%l: f32 {attn.default = 0.4 : f32}) {\n%a = attn.causal\n%b = attn.window [1, 0]\nattn.softmax "
       "lse(%a, %b) sink %l gradient(detached)\n}"},
      {"one bias for all batches and heads",
       chainText("%t = attn.bias %s, %bias : memref<1x1x?x?xf32>", "%bias: memref<1x1x?x?xf32>", "window [3, 1]")},
      {"documents", "attn.pattern @p(%cu: memref<?xi32>) {\n%w = attn.causal\n%m = attn.documents %w at %cu : "
                    "memref<?xi32>\nattn.softmax union(%m)\n}"},
      {"alibi inside documents", documentsText("%t = attn.alibi %s", ") q_origin(end)")},
      {"a table inside documents",
       documentsText("%t = attn.relative %s, %table at [2] : memref<?x6xf32>", ", %table: memref<?x6xf32>)")},
      {"positions inside documents, a bias by indices",
       documentsText("%u = attn.bias %s, %bias : memref<1x?x?x?xf32>\n%t = attn.score_map %u with %heat : f32 {\n"
                     "^bb0(%x: f32, %b: i32, %h: i32, %q: i32, %k: i32, %c: f32):\n%i = arith.sitofp %k : i32 to f32\n"
                     "%j = arith.sitofp %q : i32 to f32\n%e = arith.mulf %i, %c : f32\n%f = math.cos %j : f32\n"
                     "%g = arith.mulf %e, %f : f32\n%y = arith.addf %x, %g : f32\nattn.yield %y : f32\n}",
                     ", %bias: memref<1x?x?x?xf32>, %heat: f32 {attn.default = 0.3 : f32}) q_origin(end)")},
  };
  return list;
}

/// What gradients are of: sum of d_out * out and of d_lse * lse, where detached weights of branches stay what they are
/// in `at`.
class Loss {
public:
  explicit Loss(const Call &call) : call(call) {
    attn::PatternOp pattern = call.file->pattern();
    isDetached = pattern.getSoftmax().getGradient() == attn::Gradient::detached;
    if (isDetached)
      forEachBranch([&](oracle::RowId id, unsigned branch, const oracle::RowResult &part) {
        weights.push_back(std::exp(part.lse - call.forward().bothRows(id).exact.lse));
        (void)branch;
      });
  }

  double value() const {
    double sum = 0;
    const oracle::AttentionOracle forward = call.forward();
    for (const oracle::RowId &id : rows()) {
      const oracle::RowResult row = forward.bothRows(id).exact;
      if (row.lse == -INFINITY)
        continue;
      sum += ofLse(id) * row.lse + (isDetached ? 0 : ofOut(id, row));
    }
    size_t number = 0;
    if (isDetached)
      forEachBranch([&](oracle::RowId id, unsigned, const oracle::RowResult &part) {
        sum += weights[number++] * ofOut(id, part);
      });
    return sum;
  }

private:
  std::vector<oracle::RowId> rows() const { return oracle::sampleRows(call.inputs.sizes, 1 << 20); }
  template <class Visit> void forEachBranch(const Visit &visit) const {
    const oracle::AttentionOracle forward = call.forward();
    for (const oracle::RowId &id : rows())
      for (unsigned branch = 0; branch < 2; ++branch)
        visit(id, branch, forward.bothRows(id, branch).exact);
  }
  double ofLse(const oracle::RowId &id) const {
    const AttentionSizes &s = call.inputs.sizes;
    return call.inputs.dLse.get((id.batch * s.heads + id.head) * s.seqlenQ + id.row);
  }
  double ofOut(const oracle::RowId &id, const oracle::RowResult &row) const {
    const AttentionSizes &s = call.inputs.sizes;
    double sum = 0;
    for (int64_t c = 0; c < s.valueDim; ++c)
      sum += row.out[c] * call.inputs.dOut.get(((id.batch * s.seqlenQ + id.row) * s.heads + id.head) * s.valueDim + c);
    return sum;
  }

  const Call &call;
  bool isDetached;
  std::vector<double> weights;
};

/// Largest difference between the gradient of the loss by elements of `tensor` and `expected(row, column)`.
template <class Expected> double errorOf(Call &call, const Loss &loss, HostTensor &tensor, const Expected &expected) {
  double worst = 0;
  const int64_t dim = tensor.shape.back();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const float at = tensor.get(i);
    tensor.set(i, at + 1e-3f);
    const double above = loss.value(), high = tensor.get(i);
    tensor.set(i, at - 1e-3f);
    const double below = loss.value(), low = tensor.get(i);
    tensor.set(i, at);
    worst = std::max(worst, std::abs((above - below) / (high - low) - expected(i / dim, i % dim)));
  }
  return worst;
}

std::string textOf(const std::string &name) {
  for (const auto &[known, text] : texts())
    if (name == known)
      return text;
  FAIL("no text " << name);
  return {};
}

/// Compiled once, for all that is shown of it. Compiled code outlives no static of LLVM: the list is never destroyed.
const Compiled &compiledText(const std::string &text) {
  static auto &known = *new std::map<std::string, Compiled>;
  if (const auto found = known.find(text); found != known.end())
    return found->second;
  return known.emplace(text, Compiled(parsed(text))).first->second;
}

void checkOnCpu(Call call, const char *name) {
  call.askForArguments();
  const AttentionSizes &s = call.inputs.sizes;
  INFO(name << " " << dtypeName(call.inputs.dtype()) << " q " << s.seqlenQ << " k " << s.seqlenK << " heads " << s.heads
            << "/" << s.kvHeads);
  std::vector<HostTensor> ofArguments = call.argumentTensors();
  RoleTensors results;
  call.compute(kBackward, results, 0, 16, &ofArguments);
  const oracle::KindReport report = oracle::verifyCall(call.kindCall(), results, 50, ofArguments);
  CHECK(report.roles.size() == 3 + ofArguments.size());
  for (const oracle::RoleReport &role : report.roles) {
    INFO(role.name() << " " << role.worst.head << " " << role.worst.row);
    CHECK(role.maxError <= role.allowedError);
  }
}

constexpr AttentionSizes kSmall{1, 5, 7, 4, 2, 3, 2};

} // namespace

TEST_CASE("gradients by their definition are those of finite differences of the forward pass") {
  for (const auto &each : texts()) {
    CAPTURE(each.first);
    const Compiled &compiled = compiledText(each.second);
    Call call(compiled, kSmall);
    const oracle::GradientOracle definition(call.kindCall());
    const Loss loss(call);
    const AttentionSizes s = call.inputs.sizes;
    auto place = [](int64_t row, int64_t heads, int64_t rows) {
      return oracle::RowId{row / heads / rows, row % heads, row / heads % rows};
    };
    CHECK(errorOf(call, loss, call.inputs.q, [&](int64_t row, int64_t c) {
            return definition.ofQuery(place(row, s.heads, s.seqlenQ)).exact[c];
          }) <= 3e-6);
    // The rows that gradients of keys need are cached: a definition of its own for what the loss has moved.
    const oracle::GradientOracle ofKeys(call.kindCall());
    std::vector<oracle::KeyGradients> keys;
    for (int64_t row = 0; row < s.batch * s.seqlenK * s.kvHeads; ++row)
      keys.push_back(ofKeys.ofKey(place(row, s.kvHeads, s.seqlenK)));
    CHECK(errorOf(call, loss, call.inputs.k, [&](int64_t row, int64_t c) { return keys[row].dK.exact[c]; }) <= 3e-6);
    CHECK(errorOf(call, loss, call.inputs.v, [&](int64_t row, int64_t c) { return keys[row].dV.exact[c]; }) <= 3e-6);
  }
}

TEST_CASE("gradients of numbers, tensors and sinks by their definition are those of finite differences") {
  for (const auto &each : texts()) {
    CAPTURE(each.first);
    const Compiled &compiled = compiledText(each.second);
    Call call(compiled, kSmall);
    const Loss loss(call);
    const std::vector<HostTensor> tensors = call.argumentTensors();
    call.askForArguments();
    const oracle::KindCall kindCall = call.kindCall();
    for (size_t i = 0; i < tensors.size(); ++i) {
      const unsigned argument = unsigned(call.arguments()[i]);
      const std::vector<double> exact = oracle::GradientOracle(kindCall).ofArgument(argument).exact;
      for (int64_t element = 0; element < tensors[i].elements(); ++element) {
        CAPTURE(element);
        double high = 0, low = 0;
        const bool isCoarse = call.shape.operands.size() > argument && call.shape.operands[argument] &&
                              call.shape.operands[argument].element == DType::bf16;
        const double step = isCoarse ? 1e-2 : 1e-3;
        const double above = call.withMoved(argument, element, step, high, loss);
        const double below = call.withMoved(argument, element, -step, low, loss);
        CHECK(std::abs((above - below) / (high - low) - exact[element]) <= 2e-4);
      }
    }
  }
}

TEST_CASE("derivatives by their rules are slopes of scores") {
  const oracle::ScorePlace at{0, 1, 4, 2}; // of kSmall
  for (const auto &each : texts()) {
    CAPTURE(each.first);
    const Compiled &compiled = compiledText(each.second);
    Call call(compiled, kSmall);
    const oracle::ScoreOracle chain(call.file->pattern(), call.problem());
    for (double score : {-3.0, -0.4, 0.2, 1.7}) {
      constexpr double step = 1e-5;
      const double above = chain.score(at, score + step), below = chain.score(at, score - step);
      if (above != -INFINITY)
        CHECK(chain.slope(at, score) == doctest::Approx((above - below) / (2 * step)).epsilon(1e-7));
    }
  }
}

TEST_CASE("the CPU's gradients are those of the definition: every score, every softmax") {
  for (const auto &[name, text] : texts()) {
    const Compiled &compiled = compiledText(text);
    for (DType dtype : {DType::fp32, DType::bf16, DType::fp16})
      for (const AttentionSizes &sizes :
           {AttentionSizes{2, 37, 53, 4, 2, 16, 8}, AttentionSizes{1, 40, 21, 3, 3, 8, 24},
            AttentionSizes{1, 33, 1, 2, 1, 8, 8}, AttentionSizes{1, 1, 50, 4, 1, 8, 8}})
        checkOnCpu(Call(compiled, sizes, dtype), name);
  }
}

TEST_CASE("the CPU's gradients are those of the definition: every pattern of the library") {
  for (const std::string &path : libraryPatterns()) {
    const Compiled compiled(loaded(path));
    for (const AttentionSizes &sizes : {AttentionSizes{1, 75, 75, 6, 2, 16, 16}, AttentionSizes{1, 41, 70, 4, 4, 8, 8}})
      checkOnCpu(Call(compiled, sizes, DType::fp32, /*hasDLse=*/false), path.c_str());
  }
}

TEST_CASE("gradients on the CPU: any tile size, and bits that do not depend on the number of threads") {
  for (const char *name : {"causal", "run-time softcap", "detached branches", "heads apart", "bias",
                           "relative, then softcap", "sinks of heads"}) {
    CAPTURE(name);
    const Compiled &compiled = compiledText(textOf(name));
    const Call call(compiled, {2, 67, 61, 4, 2, 16, 16});
    for (int block : {1, 7, 64}) {
      std::vector<HostTensor> ofArguments = call.argumentTensors(), ofMany = ofArguments;
      RoleTensors one, many;
      call.compute(kBackward, one, 1, block, &ofArguments);
      call.compute(kBackward, many, 5, block, &ofMany);
      for (size_t i = 0; i < ofMany.size(); ++i)
        CHECK(ofArguments[i].data == ofMany[i].data);
      for (const RoleSpec &role : rolesOf(kBackward, Access::write))
        CHECK(one.of(role.role).data == many.of(role.role).data);
      const oracle::KindReport report = oracle::verifyCall(call.kindCall(), one, 60);
      CHECK(report.isOk());
    }
  }
}

TEST_CASE("what keeps nothing has gradients of 0, and its numbers change no others") {
  const Compiled compiled(parsed(textOf("rows without keys")));
  Call call(compiled, {1, 9, 12, 2, 2, 8, 8});
  const RoleTensors whole = call.gradients();
  auto spoil = [&](HostTensor &tensor, int64_t row) {
    for (int64_t i = 0; i < 16; ++i)
      tensor.set(row * 16 + i, i % 2 ? NAN : INFINITY);
  };
  for (Role role : {Role::q, Role::dOut, Role::out})
    spoil(call.inputs.of(role), 5);
  for (Role role : {Role::k, Role::v})
    spoil(call.inputs.of(role), 6), spoil(call.inputs.of(role), 0);
  const RoleTensors spoiled = call.gradients();
  for (const RoleSpec &role : rolesOf(kBackward, Access::write))
    CHECK(whole.of(role.role).data == spoiled.of(role.role).data);
  for (int64_t i = 0; i < 16; ++i) {
    CHECK(whole.dQ.get(5 * 16 + i) == 0);
    CHECK(whole.dK.get(7 * 16 + i) == 0);
    CHECK(whole.dV.get(0 * 16 + i) == 0);
    CHECK(whole.dV.get(3 * 16 + i) != 0);
  }
}

TEST_CASE("a query whose scores are NaN has a gradient of NaN, and so have the keys that it keeps, but no others") {
  constexpr int64_t bad = 20, rows = 40, columns = 2 * 8;
  for (const char *name : {"causal", "a run-time sink of detached branches"}) {
    CAPTURE(name);
    const Compiled &compiled = compiledText(textOf(name));
    Call call(compiled, {1, rows, rows, 2, 2, 8, 8});
    for (int64_t i = 0; i < columns; ++i)
      call.inputs.q.set(bad * columns + i, NAN);
    call.compute(kForward, call.inputs);
    const RoleTensors results = call.gradients();
    for (int64_t row = 0; row < rows; ++row) {
      CAPTURE(row);
      CHECK(std::isnan(results.dQ.get(row * columns)) == (row == bad));
      for (Role role : {Role::dK, Role::dV})
        CHECK(std::isnan(results.of(role).get(row * columns)) == (row <= bad));
    }
  }
}

TEST_CASE("a key that has all the weight of its row has a weight of 1, however large the scores") {
  const Compiled compiled(parsed(textOf("full")));
  for (double element : {1.0, 300.0, 1001.0, 33333.0, 1e9})
    for (double sign : {1.0, -1.0}) {
      CAPTURE(sign * element);
      Call call(compiled, {1, 1, 1, 1, 1, 1, 1}, DType::fp32, false);
      call.scale = 1;
      for (Role role : {Role::q, Role::k, Role::v, Role::dOut})
        call.inputs.of(role).set(0, role == Role::q ? sign * element : role == Role::k ? element : 1);
      call.compute(kForward, call.inputs);
      RoleTensors results = call.gradients();
      CHECK(results.dV.get(0) == 1);
      CHECK(results.dQ.get(0) == 0);
      CHECK(results.dK.get(0) == 0);
      CHECK(oracle::verifyCall(call.kindCall(), results, 10).isOk());
      results.dV.set(0, 1.001f);
      CHECK_FALSE(oracle::verifyCall(call.kindCall(), results, 10).isOk());
    }
}

TEST_CASE("gradients on the CPU are right at scores of any size, and what is allowed of d_v does not grow with them") {
  for (const char *name : {"causal", "alibi", "bias", "detached branches"})
    for (DType dtype : {DType::fp32, DType::fp16})
      for (double scale : {30.0, 1e3, 3e4, 1e6, 1e9}) {
        INFO(std::string(name) << " " << std::string(dtypeName(dtype)) << " scale " << scale);
        const Compiled &compiled = compiledText(textOf(name));
        Call call(compiled, {1, 60, 60, 2, 1, 16, 16}, dtype, false);
        call.scale = scale;
        call.compute(kForward, call.inputs);
        for (const oracle::RoleReport &role : oracle::verifyCall(call.kindCall(), call.gradients(), 100).roles) {
          INFO(role.name());
          CHECK(role.maxError <= role.allowedError);
          if (role.role == Role::dV)
            CHECK(role.allowedError < 10);
        }
      }
}

TEST_CASE("the definition finds gradients that are off") {
  for (DType dtype : {DType::fp32, DType::bf16}) {
    const Compiled compiled(parsed(textOf("softcap")));
    const Call call(compiled, {1, 30, 30, 2, 1, 16, 16}, dtype);
    RoleTensors right = call.gradients();
    CHECK(oracle::verifyCall(call.kindCall(), right, 100).isOk());
    for (const RoleSpec &role : rolesOf(kBackward, Access::write)) {
      CAPTURE(role.name);
      RoleTensors off = right;
      off.of(role.role).set(77, off.of(role.role).get(77) + (dtype == DType::fp32 ? 1e-3f : 0.3f));
      CHECK_FALSE(oracle::verifyCall(call.kindCall(), off, 100).isOk());
      off.of(role.role).set(77, NAN);
      CHECK_FALSE(oracle::verifyCall(call.kindCall(), off, 100).isOk());
    }
  }
}

TEST_CASE("gradients of a part of the keys of detached branches are not added up on the CPU") {
  for (const char *name : {"detached branches", "causal"}) {
    CAPTURE(name);
    const Compiled &compiled = compiledText(textOf(name));
    Call call(compiled, {1, 12, 12, 2, 2, 8, 8}, DType::fp32, false, kAccumulate);
    RoleTensors results;
    CHECK(call.tryToCompute(kAccumulate, results).isOk());
    call.shape.kOrigin = 4;
    const Status ofPart = call.tryToCompute(kAccumulate, results);
    CHECK(ofPart.isOk() == (std::string(name) == "causal"));
    if (!ofPart.isOk())
      CHECK(ofPart.message().find("k_origin: expected 0, the first of all keys, got 4: the pattern says "
                                  "gradient(detached)") == 0);
  }
}

TEST_CASE("a backward pass on the CPU refuses what does not fit together, and tensors that lack") {
  CpuCall call;
  const Compiled good(parsed(textOf("causal")));
  call.pattern = good.jit.get();
  call.seqlenQ = call.seqlenK = call.headDim = call.valueDim = 4;
  const CpuFunction compute = cpuFunctionOf(kBackward.base);
  CHECK(compute(call).message() == "q must not be null");
  call.heads = 3, call.kvHeads = 2;
  CHECK(compute(call).message().find("expected heads to be a multiple of kv_heads") == 0);
}
