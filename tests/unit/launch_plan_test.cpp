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
  LaunchPlan plan;
  plan.grid = {ceilDiv(LaunchSymbol::seqlenQ, 128) * LaunchExpr(LaunchSymbol::heads), LaunchSymbol::batch, 1};
  plan.block = 128;
  plan.sharedBytes = 49152;
  plan.workspaceBytes = LaunchExpr(LaunchSymbol::batch) * 256;
  plan.clears.push_back({{PointerSource::Kind::workspace}, 0, LaunchSymbol::batch, 7});
  plan.appendPointer({PointerSource::Kind::q});
  plan.appendPointer({PointerSource::Kind::operand, 3});
  plan.appendI32(LaunchSymbol::batch);
  plan.appendI64(LaunchSymbol::qStrideRow);
  plan.appendScaleLog2();
  plan.appendI32(LaunchExpr::param(1));
  TensorMapSpec map;
  map.source = {PointerSource::Kind::k};
  map.dims = {64, LaunchSymbol::seqlenK};
  map.strideBytes = {LaunchExpr(LaunchSymbol::kStrideRow) * 2};
  map.box = {64, 128};
  map.swizzleBytes = 128;
  plan.appendTensorMap(map);
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
  CHECK(valueOf(select(lessThan(1, 2), 10, 20)) == 10);
  CHECK(valueOf(select(lessThan(2, 2), 10, 20)) == 20);
  CHECK(valueOf(LaunchSymbol::carryRows) == 100 + kLaunchSymbolCount - 1);
}

TEST_CASE("select evaluates only the operand it chooses") {
  CHECK(valueOf(select(0, floorDiv(1, 0), 5)) == 5);
  CHECK(valueOf(select(1, 5, floorDiv(1, 0))) == 5);
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
  for (const char *text :
       {"0", "-5", "q_stride_batch", "param12", "select(lt(seqlen_q,seqlen_k),min(1,2),max(3,mod(4,5)))",
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
  int64_t expected[] = {0, 8, 16, 24, 32, 36, 64};
  REQUIRE(plan.slots.size() == 7);
  for (size_t i = 0; i < 7; ++i)
    CHECK(plan.slots[i].offset == expected[i]);
  CHECK(plan.paramBytes == 192);
  CHECK(plan.paramCount() == 2);
  CHECK(plan.validate().isOk());
  LaunchPlan tail;
  tail.appendPointer({PointerSource::Kind::q});
  tail.appendI32(1);
  CHECK(tail.paramBytes == 16);
}

TEST_CASE("a plan round-trips through its text") {
  std::string text = somePlan().str();
  Result<LaunchPlan> parsed = LaunchPlan::parse(text);
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
  CHECK(parsed->str() == text);
  CHECK(text.find("tensor_map k bf16 offset 0 swizzle 128 dims 64 seqlen_k strides mul(k_stride_row,2) box 64 128\n") !=
        std::string::npos);
  CHECK(text.find("clear workspace 0 batch 7\n") != std::string::npos);
}

TEST_CASE("where key 0 may stand is in the text of plans that care") {
  LaunchPlan plan = somePlan();
  CHECK(plan.str().find("key_origin_step") == std::string::npos);
  plan.keyOriginStep = 128;
  Result<LaunchPlan> parsed = LaunchPlan::parse(plan.str());
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
  CHECK(parsed->keyOriginStep == 128);
  CHECK(parsed->str() == plan.str());
}

TEST_CASE("a plan of several launches round-trips as version 2, others stay as they were") {
  LaunchPlan plan = somePlan();
  CHECK(plan.str().find("heddle-plan 1\n") == 0);
  KernelLaunch second;
  second.grid[0] = LaunchSymbol::heads;
  second.clears.push_back({{PointerSource::Kind::workspace}, 256, 1, 0});
  second.appendI32(LaunchExpr::param(4));
  second.appendPointer({PointerSource::Kind::workspace});
  second.slots.back().expr = LaunchExpr(LaunchSymbol::batch) * 4;
  plan.following = {second, second};
  plan.keyOriginStep = 64;
  plan.roundRows = LaunchExpr(LaunchSymbol::heads) * 256;
  const std::string text = plan.str();
  CHECK(text.find("heddle-plan 2\n") == 0);
  CHECK(text.find("slot 8 ptr workspace mul(batch,4)\n") != std::string::npos);
  Result<LaunchPlan> parsed = LaunchPlan::parse(text);
  REQUIRE_MESSAGE(parsed.isOk(), parsed.status().str());
  CHECK(parsed->str() == text);
  REQUIRE(parsed->launchCount() == 3);
  CHECK(parsed->roundRows == plan.roundRows);
  CHECK(parsed->launch(0).block == LaunchExpr(128));
  CHECK(parsed->launch(2).grid[0] == LaunchExpr(LaunchSymbol::heads));
  CHECK(parsed->paramCount() == 5);
  CHECK(parsed->usedParams()[4]);
  CHECK(evaluateGeometry(*parsed, someSymbols(), 1)->grid[0] == 101);
  CHECK(evaluateGeometry(*parsed, someSymbols(), 1)->workspaceBytes == 100 * 256);
  plan.following[1].paramBytes = 2 * kSmallParamBytes;
  CHECK(plan.minDriver() == kLargeParamDriver);
}

TEST_CASE("plans of more launches or parameters than a call takes are refused") {
  LaunchPlan plan = somePlan();
  plan.following.assign(kMaxLaunches, KernelLaunch());
  CHECK(plan.validate().message().find("at most 8 launches, got 9") != std::string::npos);
  CHECK(LaunchPlan::parse(plan.str()).status().message().find("at most 8 launches") != std::string::npos);
  plan.following.assign(1, KernelLaunch());
  plan.following[0].paramBytes = kMaxParamBytes;
  CHECK(plan.validate().message().find("parameter bytes of all launches") != std::string::npos);
  plan.following[0].entry = "two words";
  CHECK(plan.validate().message().find("entry name without spaces") != std::string::npos);
}

TEST_CASE("a symbol gives way to an expression wherever it stands") {
  const LaunchExpr expr = select(lessThan(LaunchSymbol::heads, 4), LaunchExpr(LaunchSymbol::batch) * LaunchSymbol::heads, LaunchSymbol::heads);
  const LaunchExpr replaced = expr.replaced(LaunchSymbol::heads, LaunchExpr(LaunchSymbol::kvHeads) + 1);
  CHECK(replaced.str() == "select(lt(add(kv_heads,1),4),mul(batch,add(kv_heads,1)),add(kv_heads,1))");
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
       {Case{"", "line 1: expected 'heddle-plan 1'"}, Case{"heddle-plan 9\n", "line 1: expected 'heddle-plan 1'"},
        Case{"heddle-plan 1\ngrid 1 1\n", "line 2:"}, Case{"heddle-plan 1\nblock 1 2\n", "line 2: expected the end"},
        Case{"heddle-plan 1\nblock 1\nfoo\n", "line 3: expected entry"},
        Case{"heddle-plan 1\nslot x i32 1\n", "line 2: expected an integer"},
        Case{"heddle-plan 1\nparams 8\nslot 0 i16 1\n", "line 3: expected a slot kind"},
        Case{"heddle-plan 1\nparams 8\nslot 0 ptr w\n", "line 3: expected q, k, v"},
        Case{"heddle-plan 1\nparams 8\nslot 2 i32 1\n", "slot at offset 2: expected a multiple of 4"},
        Case{"heddle-plan 1\nparams 8\nslot 8 i32 1\n", "slot at offset 8: expected to end inside"},
        Case{"heddle-plan 1\nparams 8\nslot 0 i64 1\nslot 4 i32 1\n", "overlap"},
        Case{"heddle-plan 1\nparams 128\nslot 0 tensor_map 0\n", "one of 0 tensor maps"},
        Case{"heddle-plan 1\nkey_origin_step 0\n", "step of key origins of at least 1, got 0"},
        Case{"heddle-plan 1\nparams 9999999\n", "expected at most 32704 parameter bytes"},
        Case{"heddle-plan 1\ntensor_map k bf16 offset 0 swizzle 7 dims 1 box 1\n", "swizzle 0, 32, 64 or 128"},
        Case{"heddle-plan 1\ntensor_map k int8 offset 0 swizzle 0 dims 1 box 1\n", "expected bf16, fp16 or fp32"},
        Case{"heddle-plan 1\ntensor_map k bf16 offset 0 swizzle 0 dims 1 2 box 1 2\n", "rank - 1 strides"},
        Case{"heddle-plan 1\nlaunch\n", "line 2: expected entry"},
        Case{"heddle-plan 1\nparams 8\nslot 0 ptr q 8\n", "line 3: expected the end of the line"},
        Case{"heddle-plan 1\nround_rows 8\n", "line 2: expected entry"},
        Case{"heddle-plan 2\nlaunch\nround_rows 8\n", "line 3: round_rows belongs to the whole plan"},
        Case{"heddle-plan 2\nlaunch 1\n", "line 2: expected the end of the line"},
        Case{"heddle-plan 2\nlaunch\nworkspace 1\n", "line 3: workspace belongs to the whole plan"},
        Case{"heddle-plan 2\nparams 8\nslot 0 ptr q x\n", "line 3:"},
        Case{"heddle-plan 2\nfoo\n", "slot, round_rows or launch, got 'foo'"},
        Case{"heddle-plan 1\nclear workspace 0 1 -1\n", "line 2: expected a clear value"}}) {
    Result<LaunchPlan> parsed = LaunchPlan::parse(bad.text);
    REQUIRE_MESSAGE(!parsed.isOk(), bad.text);
    CHECK_MESSAGE(parsed.status().message().find(bad.message) != std::string::npos, parsed.status().str());
  }
}

TEST_CASE("geometry outside the hardware limits is refused by name") {
  LaunchPlan plan = somePlan();
  Result<LaunchGeometry> geometry = evaluateGeometry(plan, someSymbols());
  REQUIRE(geometry.isOk());
  CHECK(geometry->grid[0] == 8 * 101);
  CHECK(geometry->workspaceBytes == 100 * 256);
  CHECK(!geometry->isEmpty());
  plan.grid[1] = 65536;
  CHECK(evaluateGeometry(plan, someSymbols()).status().message().find("grid y = 65536") != std::string::npos);
  plan.grid[1] = -1;
  CHECK(evaluateGeometry(plan, someSymbols()).status().code() == StatusCode::unsupported);
  plan.grid[1] = 0;
  CHECK(evaluateGeometry(plan, someSymbols())->isEmpty());
}
