//===- launch_plan_test.cpp - expressions and plans as text and numbers -----===//
#include "runtime/Core/LaunchPlan.h"

#include <doctest/doctest.h>

using namespace heddle;

namespace {

LaunchSymbols someSymbols() {
  static const int64_t params[] = {512, -7};
  LaunchSymbols symbols;
  for (int i = 0; i < kLaunchSymbolCount; ++i)
    symbols.values[i] = 100 + i;
  symbols[LaunchSymbol::seqlenQ] = 1000;
  symbols[LaunchSymbol::seqlenK] = 8192;
  symbols.params = params;
  symbols.paramCount = 2;
  return symbols;
}

int64_t valueOf(const LaunchExpr &expr) {
  Result<int64_t> value = expr.evaluate(someSymbols());
  REQUIRE_MESSAGE(value.isOk(), value.status().str());
  return *value;
}

std::string failureOf(const std::string &text) {
  Result<LaunchExpr> parsed = LaunchExpr::parse(text);
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
  Result<int64_t> value = parsed->evaluate(someSymbols());
  REQUIRE(!value.isOk());
  CHECK(value.status().code() == StatusCode::invalidArgument);
  return value.status().message();
}

LaunchPlan somePlan() {
  LaunchPlan plan{PlanService(Kind())};
  KernelLaunch &launch = plan.launches.emplace_back();
  launch.grid = {ceilDiv(LaunchSymbol::seqlenQ, 128) * LaunchExpr(LaunchSymbol::heads), LaunchSymbol::batch, 1};
  launch.block = 128;
  launch.sharedBytes = 49152;
  launch.clears.push_back(
      {plan.appendRegion("counters", LaunchExpr(LaunchSymbol::batch) * 256), 0, LaunchSymbol::batch, 7});
  launch.appendPointer(Role::q);
  launch.appendPointer(PointerSource::operand(3));
  launch.appendPointer(PointerSource::gradient(3));
  launch.appendI32(LaunchSymbol::batch);
  launch.appendI64(strideOf(Role::q, StrideDim::row));
  launch.appendScaleLog2();
  launch.appendI32(LaunchExpr::param(1));
  TensorMapSpec map;
  map.source = Role::k;
  map.dims = {64, LaunchSymbol::seqlenK};
  map.strideBytes = {LaunchExpr(strideOf(Role::k, StrideDim::row)) * 2};
  map.box = {64, 128};
  map.swizzleBytes = 128;
  launch.appendTensorMap(map);
  return plan;
}

} // namespace

TEST_CASE("division rounds to the floor and the ceiling for every sign") {
  for (int64_t a = -9; a <= 9; ++a)
    for (int64_t b = -4; b <= 4; ++b) {
      if (b == 0)
        continue;
      int64_t floored = valueOf(floorDiv(a, b)), ceiled = valueOf(ceilDiv(a, b)), rest = valueOf(mod(a, b));
      double exact = double(a) / double(b);
      CHECK(floored <= exact);
      CHECK(floored > exact - 1);
      CHECK(ceiled >= exact);
      CHECK(ceiled < exact + 1);
      CHECK(rest == a - floored * b);
    }
}

TEST_CASE("operators and symbols") {
  CHECK(valueOf(LaunchExpr(LaunchSymbol::seqlenK) - LaunchExpr(LaunchSymbol::seqlenQ)) == 7192);
  CHECK(valueOf(min(LaunchExpr::param(0), LaunchExpr::param(1))) == -7);
  CHECK(valueOf(max(LaunchExpr::param(0), LaunchExpr::param(1))) == 512);
  CHECK(valueOf(strideOf(Role(kRoleCount - 1), StrideDim::head)) == 100 + kLaunchSymbolCount - 1);
}

TEST_CASE("overflow, zero divisors and missing sizes are failures with a name") {
  CHECK(failureOf("add(1,floordiv(batch,0))").find("floordiv(batch,0) divides by zero") != std::string::npos);
  CHECK(failureOf("mod(1,0)").find("divides by zero") != std::string::npos);
  CHECK(failureOf("mul(9223372036854775807,2)").find("overflows") != std::string::npos);
  CHECK(failureOf("add(9223372036854775807,1)").find("overflows") != std::string::npos);
  CHECK(failureOf("sub(-9223372036854775808,1)").find("overflows") != std::string::npos);
  CHECK(failureOf("ceildiv(-9223372036854775808,-1)").find("overflows") != std::string::npos);
  CHECK(failureOf("param2").find("param2 is not given") != std::string::npos);
}

TEST_CASE("expressions round-trip through text") {
  for (const char *text : {"0", "-5", "q_stride_batch", "param12", "add(sub(seqlen_q,seqlen_k),max(min(1,2),mod(4,5)))",
                           "ceildiv(mul(batch,heads),sub(sm_count,-1))", "-9223372036854775808"}) {
    Result<LaunchExpr> parsed = LaunchExpr::parse(text);
    REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
    CHECK(parsed->str() == text);
    CHECK(*LaunchExpr::parse(parsed->str()) == *parsed);
  }
  for (int i = 0; i < kLaunchSymbolCount; ++i)
    CHECK(LaunchExpr::parse(launchSymbolName(LaunchSymbol(i)))->str() == launchSymbolName(LaunchSymbol(i)));
  CHECK(LaunchExpr::parse("add(param4,param2)")->paramCount() == 5);
}

TEST_CASE("bad expressions name the column") {
  struct Case {
    const char *text;
    const char *column;
  };
  for (Case bad : {Case{"", "column 1:"}, Case{"add(1)", "column 6:"}, Case{"add(1,2", "column 8:"},
                   Case{"add(1,2)x", "column 9:"}, Case{"add(1,foo)", "column 7:"}, Case{"param", "column 1:"},
                   Case{"param-1", "column 1:"}, Case{"param99999", "column 1:"},
                   Case{"99999999999999999999", "column 1:"}, Case{"add (1,2)", "column 4:"}}) {
    Result<LaunchExpr> parsed = LaunchExpr::parse(bad.text);
    REQUIRE_MESSAGE(!parsed.isOk(), bad.text);
    CHECK_MESSAGE(parsed.status().message().find(bad.column) != std::string::npos, parsed.status().str());
  }
  std::string deep;
  for (int i = 0; i < 100; ++i)
    deep += "add(1,";
  CHECK(LaunchExpr::parse(deep).status().message().find("nested") != std::string::npos);
}

TEST_CASE("slots follow natural C++ layout") {
  LaunchPlan plan = somePlan();
  const KernelLaunch &launch = plan.launches.front();
  int64_t expected[] = {0, 8, 16, 24, 32, 40, 44, 64};
  REQUIRE(launch.slots.size() == 8);
  for (size_t i = 0; i < 8; ++i)
    CHECK(launch.slots[i].offset == expected[i]);
  CHECK(launch.paramBytes == 192);
  CHECK(plan.paramCount() == 2);
  CHECK(plan.validate().isOk());
  KernelLaunch tail;
  tail.appendPointer(Role::q);
  tail.appendI32(1);
  CHECK(tail.paramBytes == 16);
}

TEST_CASE("a plan round-trips through its text") {
  LaunchPlan plan = somePlan();
  plan.serves.roles = {Role::q, Role::k, Role::v, Role::out, Role::lse};
  plan.serves.qOrigin = QOriginRule::end;
  plan.serves.keyOriginStep = 128;
  const std::string text = plan.str();
  Result<LaunchPlan> parsed = LaunchPlan::parse(text);
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
  CHECK(parsed->str() == text);
  CHECK(parsed->serves.roles == plan.serves.roles);
  CHECK(parsed->serves.qOrigin == QOriginRule::end);
  CHECK(parsed->serves.keyOriginStep == 128);
  CHECK(text.find("roles q k v out lse\nq_origin end\nkey_origin_step 128\n") != std::string::npos);
  CHECK(text.find("tensor_map k bf16 offset 0 swizzle 128 dims 64 seqlen_k strides mul(k_stride_row,2) box 64 128\n") !=
        std::string::npos);
  CHECK(text.find("region counters mul(batch,256) 0 0\n") != std::string::npos);
  CHECK(text.find("clear region0 0 batch 7\n") != std::string::npos);
}

TEST_CASE("a plan that says what sizes and lengths must be round-trips, under a number that older readers refuse") {
  LaunchPlan plan = somePlan();
  const LaunchExpr first = LaunchExpr::param(0);
  plan.serves.bounds = {
      {0, first, min(2, LaunchExpr(LaunchSymbol::seqlenQ) + 1), ArgumentBound::kNoMost, "entry", "one more"},
      {5, LaunchExpr::param(5), first, first, "entry", "as others, or so"},
      {2, LaunchExpr::param(2), 3, 9, "", ""}};
  const std::string text = plan.str();
  CHECK(text.find("heddle-plan 4\n") == 0);
  CHECK(text.find("\nbound 5 param5 param0 param0 entry, as others, or so\n") != std::string::npos);
  Result<LaunchPlan> parsed = LaunchPlan::parse(text);
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
  CHECK(parsed->str() == text);
  CHECK(parsed->paramCount() == 6);
  CHECK_FALSE(parsed->usedParams()[5]); // nobody must give what is only checked
  CHECK(somePlan().str().find("heddle-plan 3\n") == 0);
}

TEST_CASE("sizes and lengths out of bounds are named with what is allowed, those that are not given are passed over") {
  const LaunchExpr first = LaunchExpr::param(0);
  const std::vector<ArgumentBound> bounds = {{0, first, min(2, LaunchExpr(LaunchSymbol::seqlenQ) + 1),
                                              ArgumentBound::kNoMost, "entry", "one more than things"},
                                             {1, LaunchExpr::param(1), first, first, "entry", "as the first has"},
                                             {2, LaunchExpr::param(2), 1, min(64, LaunchSymbol::seqlenQ), "token", ""},
                                             {3, LaunchExpr::param(3), 0, ArgumentBound::kNoMost, "", ""}};
  const auto refusal = [&](std::vector<int64_t> words, uint64_t given, const std::vector<std::string> &names = {}) {
    LaunchSymbols symbols;
    symbols[LaunchSymbol::seqlenQ] = 40;
    symbols.params = words.data();
    symbols.paramCount = int64_t(words.size());
    return checkBounds(bounds, symbols, given, names).message();
  };
  CHECK(refusal({4, 4, 40, 0}, 15) == "");
  CHECK(refusal({1, 4, 1, 0}, 15) == "tensor number 0: expected at least 2 entries, one more than things, got 1");
  CHECK(refusal({4, 3, 1, 0}, 15) == "tensor number 1: expected 4 entries, as the first has, got 3");
  CHECK(refusal({4, 3, 1, 0}, 15, {"a", "b", "c", "d"}) == "tensor 'b': expected 4 entries, as the first has, got 3");
  CHECK(refusal({4, 4, 41, 0}, 15) == "tensor number 2: expected 1 to 40 tokens, got 41");
  CHECK(refusal({4, 4, 1, -1}, 15) == "expected run-time size number 3 >= 0, got -1");
  CHECK(refusal({4, 4, 1, -1}, 15, {"a", "b", "c", "d"}) == "expected d >= 0, got -1");
  CHECK(refusal({1, 3, 41, -1}, 0) == "");
  CHECK(refusal({4, 3, 1, 0}, 2) == ""); // the first one's length is not known
}

TEST_CASE("a map that makes tf32 of floats round-trips") {
  LaunchPlan plan = somePlan();
  TensorMapSpec &map = plan.launches.front().tensorMaps.front();
  map.dtype = DType::fp32, map.isTf32 = true;
  CHECK(plan.str().find("tensor_map k fp32 tf32 offset 0 ") != std::string::npos);
  Result<LaunchPlan> parsed = LaunchPlan::parse(plan.str());
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().message());
  CHECK(parsed->launches.front().tensorMaps.front().isTf32);
  CHECK(parsed->str() == plan.str());
}

TEST_CASE("a plan of several launches round-trips") {
  LaunchPlan plan = somePlan();
  KernelLaunch second;
  second.grid[0] = LaunchSymbol::heads;
  const PointerSource region = plan.appendRegion("sums", LaunchExpr(LaunchSymbol::batch) * 512, 1, 2);
  second.clears.push_back({region, 256, 1, 0});
  second.appendI32(LaunchExpr::param(4));
  second.appendPointer(region);
  second.slots.back().expr = LaunchExpr(LaunchSymbol::batch) * 4;
  plan.launches.insert(plan.launches.end(), 2, second);
  plan.roundRows = LaunchExpr(LaunchSymbol::heads) * 256;
  const std::string text = plan.str();
  CHECK(text.find("slot 8 ptr region1 mul(batch,4)\n") != std::string::npos);
  Result<LaunchPlan> parsed = LaunchPlan::parse(text);
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
  CHECK(parsed->str() == text);
  REQUIRE(parsed->launches.size() == 3);
  CHECK(parsed->roundRows == plan.roundRows);
  CHECK(parsed->launches[0].block == LaunchExpr(128));
  CHECK(parsed->launches[2].grid[0] == LaunchExpr(LaunchSymbol::heads));
  CHECK(parsed->paramCount() == 5);
  CHECK(parsed->usedParams()[4]);
  CHECK(evaluateGeometry(parsed->launches[1], someSymbols())->grid[0] == someSymbols()[LaunchSymbol::heads]);
  plan.launches[2].paramBytes = 2 * kSmallParamBytes;
  CHECK(plan.minDriver() == kLargeParamDriver);
}

TEST_CASE("plans of more launches or parameters than a call takes are refused") {
  LaunchPlan plan = somePlan();
  plan.launches.resize(kMaxLaunches + 1);
  CHECK(plan.validate().message().find("1 to 8 launches, got 9") != std::string::npos);
  CHECK(LaunchPlan::parse(plan.str()).status().message().find("at most 8 launches") != std::string::npos);
  plan.launches.resize(2);
  plan.launches[1].paramBytes = kMaxParamBytes;
  CHECK(plan.validate().message().find("parameter bytes of all launches") != std::string::npos);
  plan.launches[1].entry = "two words";
  CHECK(plan.validate().message().find("entry name without spaces") != std::string::npos);
  plan.launches.clear();
  CHECK(plan.validate().message().find("1 to 8 launches, got 0") != std::string::npos);
}

TEST_CASE("regions share bytes where their lives do not meet, and no others do") {
  LaunchPlan plan{PlanService(Kind())};
  plan.launches.resize(4);
  plan.appendRegion("first", 1000, 0, 1);
  plan.appendRegion("second", 300, 1, 2);
  plan.appendRegion("third", 700, 2, 3);
  plan.appendRegion("empty", 0, 0, 3);
  plan.appendRegion("late", 10, 3, 3);
  REQUIRE_MESSAGE(plan.validate().isOk(), plan.validate().str());
  const Result<WorkspaceLayout> layout = evaluateWorkspace(plan, someSymbols());
  REQUIRE(layout.isOk());
  CHECK(layout->offset[0] == 0);
  CHECK(layout->offset[1] == 1024);
  CHECK(layout->offset[2] == 0);
  CHECK(layout->offset[4] == 768);
  CHECK(layout->totalBytes == 1324);
  plan.regions[1].bytes = int64_t(1) << 41;
  CHECK(evaluateWorkspace(plan, someSymbols()).status().message().find("workspace bytes of second") !=
        std::string::npos);
  plan.regions[1].bytes = -1;
  CHECK(evaluateWorkspace(plan, someSymbols()).status().code() == StatusCode::unsupported);
}

TEST_CASE("what a plan does not serve, and regions that do not live, are refused in it") {
  LaunchPlan plan = somePlan();
  plan.serves.roles = {Role::k, Role::v};
  CHECK(plan.validate().message().find("launch 0 uses q, which the plan does not serve") != std::string::npos);
  plan.serves.kind.reset();
  CHECK(plan.validate().message() == "launch plan: expected the kind of calls that it serves");
  plan = somePlan();
  plan.launches.emplace_back().appendPointer(PointerSource::region(0));
  CHECK(plan.validate().message().find("launch 1 uses region0, which does not live then") != std::string::npos);
  plan.regions[0].last = 2;
  CHECK(plan.validate().message().find("a life within the 2 launches, got 0 to 2") != std::string::npos);
}

TEST_CASE("a symbol gives way to an expression wherever it stands") {
  const LaunchExpr expr = min(LaunchExpr(LaunchSymbol::batch) * LaunchSymbol::heads, max(LaunchSymbol::heads, 4));
  const LaunchExpr replaced = expr.replaced(LaunchSymbol::heads, LaunchExpr(LaunchSymbol::kvHeads) + 1);
  CHECK(replaced.str() == "min(mul(batch,add(kv_heads,1)),max(add(kv_heads,1),4))");
  CHECK(valueOf(replaced) == valueOf(LaunchExpr(LaunchSymbol::kvHeads) + 1));
  CHECK(expr.replaced(LaunchSymbol::seqlenQ, 0) == expr);
  CHECK(LaunchExpr::param(2).replaced(LaunchSymbol::batch, 7) == LaunchExpr::param(2));
}

TEST_CASE("bad plans name the line and what was expected") {
  struct Case {
    const char *text;
    const char *message;
  };
  for (Case bad :
       {Case{"", "line 1: expected 'heddle-plan 3'"},
        Case{"heddle-plan 1\n", "line 1: expected 'heddle-plan 3' or 'heddle-plan 4', got 'heddle-plan 1'"},
        Case{"heddle-plan 3\n", "1 to 8 launches, got 0"},
        Case{"heddle-plan 3\ngrid 1 1\n", "line 2: expected kind, roles"},
        Case{"heddle-plan 3\nlaunch k\ngrid 1 1\n", "line 3:"},
        Case{"heddle-plan 3\nlaunch k\nblock 1 2\n", "line 3: expected the end"},
        Case{"heddle-plan 3\nlaunch k\nblock 1\nfoo\n", "line 4: expected grid"},
        Case{"heddle-plan 3\nlaunch k\nslot x i32 1\n", "line 3: expected an integer"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 i16 1\n", "line 4: expected a slot kind"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 ptr w\n", "line 4: expected q, k, v"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 i64 1\n", "expected the kind of calls"},
        Case{"heddle-plan 3\nkind sideways\n", "no kind 'sideways'; there is forward"},
        Case{"heddle-plan 3\nkind forward\nlaunch k\nparams 8\nslot 0 ptr q\n",
             "launch 0 uses q, which the plan does not serve"},
        Case{"heddle-plan 3\nkind forward\nlaunch k\nparams 8\nslot 0 ptr region0\n", "launch 0 uses region0"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 ptr regionx\n",
             "operand<i>, region<i> or gradient<i>, got 'regionx'"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 i32 param64\n", "line 4:"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 ptr operand64\n", "or gradient<i>, got 'operand64'"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 ptr gradient64\n", "or gradient<i>, got 'gradient64'"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 2 i32 1\n", "slot at offset 2: expected a multiple of 4"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 8 i32 1\n", "slot at offset 8: expected to end inside"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 i64 1\nslot 4 i32 1\n", "overlap"},
        Case{"heddle-plan 3\nlaunch k\nparams 128\nslot 0 tensor_map 0\n", "one of 0 tensor maps"},
        Case{"heddle-plan 3\nkey_origin_step -1\nlaunch k\n", "step of key origins of at least 0, got -1"},
        Case{"heddle-plan 3\nq_origin middle\n", "line 2: no q_origin rule 'middle'"},
        Case{"heddle-plan 3\nroles q w\n", "line 2: expected q, k, v"},
        Case{"heddle-plan 3\nroles operand1\n", "line 2: expected a role"},
        Case{"heddle-plan 3\nregion r 8 0\n", "line 2: expected an integer"},
        Case{"heddle-plan 3\nlaunch k\nparams 9999999\n", "expected at most 32704 parameter bytes"},
        Case{"heddle-plan 3\nlaunch k\ntensor_map k bf16 offset 0 swizzle 7 dims 1 box 1\n",
             "swizzle 0, 32, 64 or 128"},
        Case{"heddle-plan 3\nlaunch k\ntensor_map k bf16 tf32 offset 0 swizzle 0 dims 1 box 1\n",
             "expected fp32 to be made tf32 of, got bf16"},
        Case{"heddle-plan 3\nlaunch k\ntensor_map k int8 offset 0 swizzle 0 dims 1 box 1\n",
             "expected bf16, fp16, fp32 or e4m3,"},
        Case{"heddle-plan 3\nlaunch k\ntensor_map k bf16 offset 0 swizzle 0 dims 1 2 box 1 2\n", "rank - 1 strides"},
        Case{"heddle-plan 3\nlaunch\n", "entry name without spaces"},
        Case{"heddle-plan 3\nlaunch k\nround_rows 8\n", "line 3: expected grid"},
        Case{"heddle-plan 3\nlaunch k 1\n", "line 2: expected the end of the line"},
        Case{"heddle-plan 3\nlaunch k\nparams 8\nslot 0 ptr q x\n", "line 4:"},
        Case{"heddle-plan 3\nlaunch k\nclear q 0 1 -1\n", "line 3: expected a clear value"}}) {
    Result<LaunchPlan> parsed = LaunchPlan::parse(bad.text);
    REQUIRE_MESSAGE(!parsed.isOk(), bad.text);
    CHECK_MESSAGE(parsed.status().message().find(bad.message) != std::string::npos, parsed.status().str());
  }
}

TEST_CASE("geometry outside the hardware limits is refused by name") {
  KernelLaunch launch = somePlan().launches.front();
  Result<LaunchGeometry> geometry = evaluateGeometry(launch, someSymbols());
  REQUIRE(geometry.isOk());
  CHECK(geometry->grid[0] == 8 * someSymbols()[LaunchSymbol::heads]);
  CHECK(!geometry->isEmpty());
  launch.grid[1] = 65536;
  CHECK(evaluateGeometry(launch, someSymbols()).status().message().find("grid y = 65536") != std::string::npos);
  launch.grid[1] = -1;
  CHECK(evaluateGeometry(launch, someSymbols()).status().code() == StatusCode::unsupported);
  launch.grid[1] = 0;
  CHECK(evaluateGeometry(launch, someSymbols())->isEmpty());
}
