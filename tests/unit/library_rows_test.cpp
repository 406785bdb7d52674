// Defaults for calls of more and of fewer rows: of e4m3 values are turned over once from 8k rows on, in whatever order
// calls come, from libheddle, from the database alone, and beside what was tuned.
#include "library_session.h"
#include "runtime/Store/Store.h"

using namespace heddle::test;
using namespace heddle;

namespace {

constexpr const char *kCausal = "attn.pattern @p() { %m = attn.causal attn.softmax union(%m) }";

heddle_problem problemOf(int64_t rows, int32_t dtype = HEDDLE_E4M3) {
  heddle_problem problem = smallProblem();
  problem.dtype = dtype;
  problem.head_dim = 128;
  problem.seqlen_q = problem.seqlen_k = rows;
  return problem;
}

bool turnsOnce(const std::string &config) { return config.find("\nturn_values=1\n") != std::string::npos; }

struct Calls : Session {
  explicit Calls(const char *text = kCausal) { pattern = parse(text); }

  heddle_kernel_info ask(int64_t rows, uint32_t flags = 0, int32_t dtype = HEDDLE_E4M3) {
    held = found(flags, problemOf(rows, dtype));
    return infoOf(held.get());
  }
  bool turns(int64_t rows, uint32_t flags = 0) { return turnsOnce(ask(rows, flags).config); }

  // Without a compiler.
  bool turnsInStore(int64_t rows) {
    heddle_store *store = nullptr;
    CHECK_OK(heddle_store_open(database.c_str(), 0, &store));
    auto query = sized<heddle_kernel_query>();
    query.dtype = HEDDLE_E4M3;
    query.pattern = "p";
    query.head_dim = query.value_dim = 128;
    query.batch = 1, query.heads = query.kv_heads = 4, query.seqlen_q = rows;
    heddle_kernel *kernel = nullptr;
    CHECK_OK(heddle_kernel_find(store, device.get(), &query, &kernel));
    held.reset(kernel);
    heddle_store_close(store);
    return turnsOnce(infoOf(held.get()).config);
  }

  // The default for calls of so many rows, as if it had won a search for a call of as many.
  void tune(int64_t rows) {
    const std::string content = ask(rows).content_key;
    Result<Store> store = Store::open(database, [] {
      StoreOptions options;
      options.mode = StoreMode::readWrite;
      return options;
    }());
    REQUIRE(store.isOk());
    Result<KernelRecord> record = store->kernel(content);
    REQUIRE(record.isOk());
    const CallShape call = *record->shape();
    Winner winner;
    static_cast<WinnerKey &>(winner) =
        WinnerKey(*record, ProblemBucket::of(1, 1, 1, 1, ProblemBucket::rowsBucket(rows, call)),
                  {"Fake GPU", "sm_90", 132, 140}, {1, 4, 4, rows, rows});
    winner.contentKey = content;
    winner.isTuned = 1;
    winner.medianUs = 12.5;
    winner.driverVersion = 13000;
    REQUIRE(store->publish(*record, winner).isOk());
    compiler = openCompiler(database); // which asks the database at once
  }

  KernelHandle held;
};

} // namespace

TEST_CASE("calls of e4m3 have their own default below 8k rows and from there on, whoever asks first") {
  if (!start())
    return;
  for (bool isLongFirst : {false, true}) {
    Calls calls;
    const int before = counting_nvrtc_compilations();
    CHECK(calls.turns(isLongFirst ? 32768 : 2048) == isLongFirst);
    CHECK(calls.turns(isLongFirst ? 2048 : 32768) != isLongFirst);
    CHECK(counting_nvrtc_compilations() == before + 2);
    for (uint32_t flags : {uint32_t(0), uint32_t(HEDDLE_FIRST_SOON), uint32_t(HEDDLE_ONLY_STORED)})
      for (auto [rows, isLong] : {std::pair<int64_t, bool>(300, false), {8191, false}, {8192, true}, {100000, true}})
        CHECK(calls.turns(rows, flags) == isLong);
    CHECK_FALSE(calls.turnsInStore(2048));
    CHECK(calls.turnsInStore(32768));
    calls.compiler = openCompiler(calls.database);
    CHECK_FALSE(calls.turns(4096));
    CHECK(calls.turns(16384));
    CHECK(counting_nvrtc_compilations() == before + 2);
  }
}

TEST_CASE("a default for calls of other lengths serves where there is nothing else") {
  if (!start())
    return;
  Calls calls;
  CHECK(calls.turns(32768));
  CHECK(calls.turnsInStore(2048));
  CHECK(calls.turns(2048, HEDDLE_ONLY_STORED));
  calls.ask(2048, HEDDLE_FIRST_SOON); // meanwhile
  CHECK_FALSE(calls.turns(2048));
  CHECK_FALSE(calls.turns(2048, HEDDLE_FIRST_SOON));
  CHECK_FALSE(calls.turnsInStore(2048));
}

TEST_CASE("what was tuned for calls of other lengths is passed over for the default of a call's own") {
  if (!start())
    return;
  for (bool isLong : {false, true}) {
    Calls calls;
    const int64_t own = isLong ? 16384 : 2048, tuned = isLong ? 4096 : 65536;
    calls.tune(tuned);
    CHECK(calls.ask(tuned, HEDDLE_ONLY_STORED).match != HEDDLE_MATCH_UNTUNED_DEFAULT);
    CHECK(calls.turns(own, HEDDLE_ONLY_STORED) != isLong); // nothing else is there
    CHECK(calls.turns(own) == isLong);
    CHECK(calls.turns(own, HEDDLE_ONLY_STORED) == isLong);
    CHECK(calls.turnsInStore(own) == isLong);
    CHECK(calls.turnsInStore(tuned) != isLong);
    const int64_t near = isLong ? 8000 : 9000; // of what was tuned
    CHECK(calls.turns(near, HEDDLE_ONLY_STORED) != isLong);
    CHECK(calls.ask(near, HEDDLE_ONLY_STORED).match != HEDDLE_MATCH_UNTUNED_DEFAULT);
  }
}

TEST_CASE("where length changes no default nothing is compiled twice") {
  if (!start())
    return;
  Calls windows("attn.pattern @p() { %m = attn.window [64, 0] attn.softmax union(%m) }");
  const int before = counting_nvrtc_compilations();
  const std::string window = windows.ask(2048).content_key;
  CHECK(windows.ask(32768).content_key == window);
  CHECK(counting_nvrtc_compilations() == before + 1);
  Calls calls;
  const std::string bf16 = calls.ask(2048, 0, HEDDLE_BF16).content_key;
  CHECK(calls.ask(32768, HEDDLE_ONLY_STORED, HEDDLE_BF16).content_key == bf16);
  CHECK(counting_nvrtc_compilations() == before + 2);
}

namespace {

int warpsOf(Calls &calls, int64_t queries, int64_t heads, uint32_t flags = 0) {
  heddle_problem problem = problemOf(queries, HEDDLE_BF16);
  problem.kind = "decode";
  problem.heads = heads, problem.kv_heads = 4, problem.seqlen_k = 8192;
  calls.held = calls.found(flags, problem);
  const std::string config = infoOf(calls.held.get()).config;
  return config.find("\nwarps=8\n") != std::string::npos ? 8 : 4;
}

} // namespace

TEST_CASE("sequences of many rows for each kv head have blocks of eight warps, others of four, whoever asks first") {
  if (!start())
    return;
  for (bool areManyFirst : {false, true}) {
    Calls calls;
    const int before = counting_nvrtc_compilations();
    CHECK(warpsOf(calls, areManyFirst ? 2048 : 1, 16) == (areManyFirst ? 8 : 4));
    CHECK(warpsOf(calls, areManyFirst ? 1 : 2048, 16) == (areManyFirst ? 4 : 8));
    for (auto [queries, heads, warps] :
         {std::tuple<int64_t, int64_t, int>(16, 16, 4), {64, 4, 4}, {65, 16, 8}, {512, 4, 8}})
      CHECK(warpsOf(calls, queries, heads, HEDDLE_ONLY_STORED) == warps);
    CHECK(warpsOf(calls, 64, 16) == 8);
    CHECK(counting_nvrtc_compilations() == before + 2);
  }
}
