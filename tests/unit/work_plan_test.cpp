//===- work_plan_test.cpp - plan files --------------------------------------===//
#include "compiler/Plan/WorkPlan.h"

#include <doctest/doctest.h>

#include <set>

using namespace heddle;

namespace {

WorkPlan parsed(const std::string &text) {
  Result<WorkPlan> plan = WorkPlan::parse(text, "plan.json", "/plans");
  REQUIRE_MESSAGE(plan.isOk(), plan.status().message());
  return plan.take();
}

std::string refusal(const std::string &text) {
  const Status status = WorkPlan::parse(text, "plan.json", "/plans").status();
  CHECK((status.isOk() || status.code() == StatusCode::invalidArgument));
  return status.message();
}

} // namespace

TEST_CASE("a plan stands for all combinations, in order") {
  const WorkPlan plan = parsed(R"({ // of a server
    "patterns": ["a.mlir", {"file": "/else/b.mlir", "pattern": "p", "name": "window", "set": {"left": 1023, "cap": 30.5}}],
    "head_dims": [64, {"head": 192, "value": 128}], "dtypes": ["bf16", "fp16"], "archs": ["sm_80", "sm_90a"],
    "problems": [{"heads": 16, "seqlen": 8192}, {"batch": 2, "heads": 8, "kv_heads": 2, "seqlen": 1, "seqlen_k": 4096}],
    "gpus": "NVIDIA H200"})");
  CHECK(plan.patterns[0].file == "/plans/a.mlir");
  CHECK(plan.patterns[1].file == "/else/b.mlir");
  CHECK(plan.patterns[1].sizes == std::vector<std::string>{"left=1023", "cap=30.5"});
  const std::vector<PackItem> kernels = plan.packItems();
  REQUIRE(kernels.size() == 16);
  CHECK(kernels[0].str() == "a.mlir bf16 head_dim=64 sm_80");
  CHECK(kernels[1].arch == "sm_90a");
  CHECK(kernels[2].dtype == DType::fp16);
  CHECK(kernels[15].str() == "/else/b.mlir:p as window fp16 head_dim=192 value_dim=128 sm_90a");
  const std::vector<TuneItem> items = plan.tuneItems();
  REQUIRE(items.size() == 16);
  CHECK(items[0].str() == "a.mlir bf16 head_dim=64 1x16x8192 on NVIDIA H200");
  CHECK(items[15].str() ==
        "/else/b.mlir:p as window left=1023 cap=30.5 fp16 head_dim=192 value_dim=128 2x8[2]x1/4096 on NVIDIA H200");
  std::set<std::string> texts;
  for (const TuneItem &item : items)
    texts.insert(item.str());
  CHECK(texts.size() == items.size());
}

TEST_CASE("kinds are packed and tuned beside each other, and forward goes without saying") {
  const WorkPlan plan =
      parsed(R"({"patterns": "a.mlir", "head_dims": 64, "archs": "sm_90a", "kinds": ["forward", "backward"],
                                  "problems": {"heads": 4, "seqlen": 16}})");
  const std::vector<PackItem> kernels = plan.packItems();
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].str() == "a.mlir bf16 head_dim=64 sm_90a");
  CHECK(kernels[1].str() == "a.mlir backward bf16 head_dim=64 sm_90a");
  const std::vector<TuneItem> items = plan.tuneItems();
  REQUIRE(items.size() == 2);
  CHECK(items[0].kind == Kind());
  CHECK(items[1].str() == "a.mlir backward bf16 head_dim=64 1x4x16");
  const auto refused = WorkPlan::parse(R"({"patterns": "a.mlir", "kinds": "sideways"})", "plan.json", "");
  CHECK(refused.status().message() ==
        "plan.json: kinds: expected one of forward, forward_v_key_major, row_dot, backward, backward_accumulate, "
        "backward_accumulate_keys, backward_deterministic, backward_accumulate_deterministic, "
        "backward_accumulate_keys_deterministic, decode, cascade, quantize, quantize_v_key_major, "
        "quantize_rotated, quantize_rotated_v_key_major, decode_invariant, got \"sideways\"");
}

TEST_CASE("types have the precisions that a plan names, e4m3 in forward calls two if it names none") {
  const auto itemsOf = [](const std::string &lists) {
    std::vector<std::string> texts;
    for (const TuneItem &item :
         parsed(R"({"patterns": "a.mlir", "head_dims": 64, "problems": {"heads": 4, "seqlen": 16}, )" + lists + "}")
             .tuneItems())
      texts.push_back(item.str());
    return texts;
  };
  using Texts = std::vector<std::string>;
  CHECK(itemsOf(R"("dtypes": ["bf16", "fp32", "e4m3"])") ==
        Texts{"a.mlir bf16 head_dim=64 1x4x16", "a.mlir fp32 head_dim=64 1x4x16", "a.mlir e4m3 head_dim=64 1x4x16",
              "a.mlir e4m3 fast head_dim=64 1x4x16"});
  CHECK(itemsOf(R"("dtypes": "fp32", "precisions": "tf32", "kinds": ["forward", "backward"])") ==
        Texts{"a.mlir fp32 tf32 head_dim=64 1x4x16", "a.mlir backward fp32 tf32 head_dim=64 1x4x16"});
  CHECK(itemsOf(R"("dtypes": "e4m3", "kinds": "quantize")") == Texts{"a.mlir quantize e4m3 head_dim=64 1x4x16"});
  CHECK(itemsOf(R"("dtypes": ["fp32", "e4m3"], "precisions": ["exact", "tf32"])").size() == 3);
  CHECK(
      parsed(R"({"patterns": "a.mlir", "head_dims": 64, "dtypes": "e4m3", "archs": "sm_90a"})").packItems()[1].str() ==
      "a.mlir e4m3 fast head_dim=64 sm_90a");
  CHECK(refusal(R"({"patterns": "a.mlir", "dtypes": ["fp32", "bf16"], "precisions": "tf32"})") ==
        "plan.json: precisions: expected \"exact\" among them, which forward of bf16 has alone");
  CHECK(refusal(R"({"patterns": "a.mlir", "precisions": "slow"})") ==
        "plan.json: precisions: expected one of exact, tf32, fast, got \"slow\"");
}

TEST_CASE("problems of served keys are those of kinds that have sequences, and of no others") {
  const WorkPlan plan = parsed(R"({"patterns": "a.mlir", "head_dims": 64, "kinds": ["forward", "decode"], "problems": [
    {"heads": 4, "seqlen": 16},
    {"batch": 32, "heads": 8, "kv_heads": 2, "lengths": "512-4k", "page_size": 16},
    {"batch": 2, "heads": 8, "seqlen": 3, "lengths": 70, "keys": "rows"}]})");
  const std::vector<TuneItem> items = plan.tuneItems();
  REQUIRE(items.size() == 3);
  CHECK(items[0].str() == "a.mlir bf16 head_dim=64 1x4x16");
  CHECK(items[1].str() == "a.mlir decode bf16 head_dim=64 32x8[2]x1 over 512-4096 keys, pages of 16");
  CHECK(items[2].str() == "a.mlir decode bf16 head_dim=64 2x8x3 over 70 keys, rows");
  CHECK(items[2].problem.seqlenK == 128);
  const auto refusal = [](const std::string &problem) {
    return WorkPlan::parse(R"({"patterns": "a.mlir", "problems": )" + problem + "}", "plan.json", "")
        .status()
        .message();
  };
  const auto mentions = [](const std::string &text, const char *word) { return text.find(word) != std::string::npos; };
  CHECK(mentions(refusal(R"({"heads": 4, "lengths": "9-5"})"), "problems.lengths: expected keys of each sequence"));
  CHECK(mentions(refusal(R"({"heads": 4, "lengths": 9, "keys": "heap"})"),
                 "problems.keys: expected one of pages, lists, rows, indices"));
  CHECK(mentions(refusal(R"({"heads": 4, "lengths": 9, "seqlen_k": 9})"), "\"lengths\" or \"seqlen_k\""));
  CHECK(mentions(refusal(R"({"heads": 4, "seqlen": 9, "page_size": 9})"), "\"lengths\" beside \"page_size\""));
  CHECK(mentions(refusal(R"({"heads": 4, "lengths": 9, "page_size": 257})"), "problems.page_size"));
}

TEST_CASE("gradients of what a pattern reads are those of its items of gradients") {
  const WorkPlan plan = parsed(
      R"({"patterns": [{"file": "a.mlir", "gradients_of": ["bias", "cap"]}, {"file": "a.mlir", "gradients_of": "cap"}, "a.mlir"],
                                  "head_dims": 64, "archs": "sm_90a", "kinds": ["forward", "backward"],
                                  "problems": {"heads": 4, "seqlen": 16}})");
  const std::vector<PackItem> kernels = plan.packItems();
  REQUIRE(kernels.size() == 4);
  CHECK(kernels[0].str() == "a.mlir bf16 head_dim=64 sm_90a");
  CHECK(kernels[1].str() == "a.mlir backward of bias, cap bf16 head_dim=64 sm_90a");
  CHECK(kernels[2].str() == "a.mlir backward of cap bf16 head_dim=64 sm_90a");
  CHECK(kernels[3].pattern.gradientsOf.empty());
  CHECK(plan.tuneItems()[1].str() == "a.mlir backward of bias, cap bf16 head_dim=64 1x4x16");
}

TEST_CASE("what is left out, and what is said twice") {
  const WorkPlan plan =
      parsed(R"({"patterns": ["a.mlir", "a.mlir", {"file": "a.mlir", "set": {"left": 1}}], "archs": "sm_80",
                                  "problems": {"heads": 4, "seqlen": 16}})");
  CHECK(plan.headDims.size() == 2);
  CHECK(plan.dtypes == std::vector<DType>{DType::bf16});
  CHECK(plan.packItems().size() == 2); // one kernel serves all sizes
  const std::vector<TuneItem> items = plan.tuneItems();
  REQUIRE(items.size() == 4);
  CHECK(items[0].problem.kvHeads == 4);
  CHECK(items[0].problem.seqlenK == 16);
  CHECK(items[0].gpu.empty());
  CHECK(parsed(R"({"patterns": "a.mlir"})").packItems().empty());
}

TEST_CASE("a pattern may have head dims and problems of its own, in the place of the plan's") {
  const WorkPlan plan =
      parsed(R"({"patterns": ["a.mlir", {"file": "b.mlir", "head_dims": [64, {"head": 192, "value": 128}]},
                                                {"file": "c.mlir", "problems": {"heads": 2, "seqlen": 99}}],
                                  "head_dims": 128, "archs": "sm_80", "problems": {"heads": 4, "seqlen": 16}})");
  std::vector<std::string> texts;
  for (const TuneItem &item : plan.tuneItems())
    texts.push_back(item.str());
  CHECK(texts == std::vector<std::string>{"a.mlir bf16 head_dim=128 1x4x16", "b.mlir bf16 head_dim=64 1x4x16",
                                          "b.mlir bf16 head_dim=192 value_dim=128 1x4x16",
                                          "c.mlir bf16 head_dim=128 1x2x99"});
  CHECK(plan.packItems().size() == 4);
  CHECK(refusal(R"({"patterns": {"file": "x", "problems": [{"heads": 3}]}})") ==
        "plan.json: patterns.problems[0]: expected \"heads\" and \"seqlen\", got {\"heads\":3}");
  CHECK(refusal(R"({"patterns": {"file": "x", "head_dims": 0}})") ==
        "plan.json: patterns.head_dims: expected a whole number of at least 1, got 0");
}

TEST_CASE("counts may be texts, and patterns of the library are named") {
  const WorkPlan plan = parsed(
      R"({"patterns": ["causal", "library:full", {"file": "x/causal", "set": {"left": "4k", "cap": 1.5}}], "head_dims": "2^6",
                                  "problems": {"batch": "1k", "heads": 16, "seqlen": "1M"}})");
  CHECK(plan.patterns[0].file == "library:causal");
  CHECK(plan.patterns[0].label == "causal");
  CHECK(plan.patterns[1].file == "library:full");
  CHECK(plan.patterns[2].file == "/plans/x/causal");
  CHECK(plan.patterns[2].sizes == std::vector<std::string>{"left=4096", "cap=1.5"});
  CHECK(plan.headDims[0].head == 64);
  CHECK(plan.problems[0].batch == 1024);
  CHECK(plan.problems[0].seqlenQ == 1 << 20);
  CHECK(refusal(R"({"patterns": "a", "problems": {"heads": 2, "seqlen": "1.3k"}})") ==
        "plan.json: problems.seqlen: expected a whole number of at least 1, got \"1.3k\"");
  CHECK(refusal(R"({"patterns": {"file": "x", "set": {"left": 1, "left": 2}}})") ==
        "plan.json: the key 'left' is given twice in one object");
}

TEST_CASE("two files of one name are two patterns") {
  const std::vector<PackItem> items =
      parsed(R"({"patterns": ["x/a.mlir", "y/a.mlir"], "head_dims": 64, "archs": "sm_80"})").packItems();
  REQUIRE(items.size() == 2);
  CHECK(items[1].str() == "y/a.mlir bf16 head_dim=64 sm_80");
}

TEST_CASE("plans that could fill the memory are refused") {
  std::string keys, problems;
  for (int i = 0; i < 300; ++i)
    keys += (i ? ", \"k" : "\"k") + std::to_string(i) + "\": 1";
  CHECK(refusal("{\"patterns\": {\"file\": \"a\", \"set\": {" + keys + "}}}") ==
        "plan.json: expected at most 256 keys of an object, got 300");
  for (int i = 1; i <= 2000; ++i)
    problems += (i > 1 ? ", {\"heads\": 1, \"seqlen\": " : "{\"heads\": 1, \"seqlen\": ") + std::to_string(i) + "}";
  std::string gpus = "\"g\"";
  for (int i = 1; i < 1000; ++i)
    gpus += ", \"g" + std::to_string(i) + "\"";
  CHECK(refusal("{\"patterns\": \"a\", \"problems\": [" + problems + "], \"gpus\": [" + gpus + "]}") ==
        "plan.json: expected at most 1000000 combinations, got 4000000");
}

TEST_CASE("what is wrong, and where") {
  CHECK(refusal("{\"patterns\": [\"a\"],").find("plan.json: expected a plan in JSON: ") == 0);
  CHECK(refusal("[]").find("plan.json: expected an object with archs, dtypes") == 0);
  CHECK(refusal("{}") == "plan.json: expected \"patterns\", a list of files");
  CHECK(refusal(R"({"patterns": "a", "head_dim": 64})") ==
        "plan.json: unknown key 'head_dim'; there are archs, dtypes, gpus, head_dims, kinds, patterns, precisions, "
        "problems");
  CHECK(refusal(R"({"patterns": []})") == "plan.json: patterns: expected at least one value, got []");
  CHECK(refusal(R"({"patterns": [{"name": "x"}]})") ==
        "plan.json: patterns[0]: expected \"file\", got {\"name\":\"x\"}");
  CHECK(refusal(R"({"patterns": [{"file": "x", "set": [1]}]})") ==
        "plan.json: patterns[0].set: expected an object of sizes, such as {\"left\": 1023}, got [1]");
  CHECK(refusal(R"({"patterns": [{"file": "x", "set": {"left": "x"}}]})") ==
        "plan.json: patterns[0].set.left: expected a number, got \"x\"");
  CHECK(refusal(R"({"patterns": "a", "head_dims": [64, -8]})") ==
        "plan.json: head_dims[1]: expected a whole number of at least 1, got -8");
  CHECK(refusal(R"({"patterns": "a", "head_dims": {"head": 64}})") ==
        "plan.json: head_dims: expected \"head\" and \"value\", got {\"head\":64}");
  CHECK(refusal(R"({"patterns": "a", "dtypes": "fp8"})") ==
        "plan.json: dtypes: expected bf16, fp16, fp32 or e4m3, got \"fp8\"");
  CHECK(refusal(R"({"patterns": "a", "archs": [""]})") == "plan.json: archs[0]: expected a text, got \"\"");
  CHECK(refusal(R"({"patterns": "a", "problems": {"heads": 3}})") ==
        "plan.json: problems: expected \"heads\" and \"seqlen\", got {\"heads\":3}");
  CHECK(refusal(R"({"patterns": "a", "problems": {"heads": 3, "kv_heads": 2, "seqlen": 9}})")
            .find("expected heads that are a multiple of kv_heads") != std::string::npos);
  CHECK(refusal(R"({"patterns": "a", "problems": {"heads": 99999999999999999999, "seqlen": 9}})")
            .find("problems.heads: expected a whole number of at least 1") != std::string::npos);
  CHECK(WorkPlan::load("/nowhere/plan.json").status().message() ==
        "cannot read plan '/nowhere/plan.json': No such file or directory");
}
