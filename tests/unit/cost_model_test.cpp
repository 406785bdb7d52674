// Promises of tuner/Model: what a fit finds, how an order of points is judged.
#include "tests/unit/tuner_fixture.h"
#include "tests/recorded/Fit.h"
#include "tests/recorded/RankReport.h"
#include "tuner/Model/Spearman.h"

#include <cmath>

using namespace heddle;
using namespace heddle::tuner;

namespace {

CostModel startModel() { return {{{"work", 1}, {"wait", 1}}, {{"slow", 0}, {"unseen", 0.25}}, ""}; }

// Times of 3 work + 0.5 wait, a half longer where "slow" applies.
std::vector<CostSample> samples() {
  std::vector<CostSample> result;
  for (int i = 1; i <= 400; ++i) {
    const double work = 10 + i % 17, wait = 5 * double(i % 23), slow = i % 3 == 0;
    result.push_back({{{work, wait}, {slow, 0}}, (3 * work + 0.5 * wait) * (slow ? 1.5 : 1)});
  }
  return result;
}

} // namespace

TEST_CASE("a fit finds the parameters that made the times, and leaves alone what no trial speaks of") {
  Result<CostFit> fit = fitCostModel(startModel(), samples());
  REQUIRE_MESSAGE(fit.isOk(), fit.status().message());
  CHECK(fit->rms < 0.01);
  CHECK(fit->model.terms[0].value == doctest::Approx(3).epsilon(0.02));
  CHECK(fit->model.terms[1].value == doctest::Approx(0.5).epsilon(0.02));
  CHECK(fit->model.factors[0].value == doctest::Approx(std::log(1.5)).epsilon(0.05));
  CHECK(fit->model.factors[1].value == 0.25);
  const Result<CostFit> again = fitCostModel(startModel(), samples());
  CHECK(again->model.terms == fit->model.terms);
  CHECK(again->model.factors == fit->model.factors);
}

TEST_CASE("a fit is refused without samples, without work and with features of another model") {
  auto message = [](std::vector<CostSample> samples) { return fitCostModel(startModel(), samples).status().message(); };
  CHECK(message({}) == "cost model: no trials to fit");
  CHECK(message({{{{1}, {0, 0}}, 5}}) == "cost model: features of another model");
  CHECK(message({{{{0, 0}, {0, 0}}, 5}}) == "cost model: expected times and terms above 0");
  CHECK(message({{{{1, 1}, {0, 0}}, 0}}) == "cost model: expected times and terms above 0");
}

TEST_CASE("parameters are found by name") {
  CostModel model = startModel();
  CHECK(model.find("wait") == &model.terms[1]);
  CHECK(model.find("unseen") == &model.factors[1]);
  CHECK(!model.find("speed"));
}

TEST_CASE("rank correlation is that of ranks, and ties share theirs") {
  CHECK(spearman({1, 2, 3, 4}, {10, 100, 1000, 10000}) == doctest::Approx(1));
  CHECK(spearman({1, 2, 3, 4}, {4, 3, 2, 1}) == doctest::Approx(-1));
  CHECK(spearman({1, 2, 2, 3}, {1, 2, 2, 3}) == doctest::Approx(1));
  CHECK(spearman({1, 1, 2, 2}, {1, 2, 3, 4}) == doctest::Approx(4 / std::sqrt(4 * 5.0)));
  CHECK(spearman({5, 5, 5}, {1, 2, 3}) == 0);
}

TEST_CASE("a report says what the first candidates of an order lose against the best") {
  std::vector<PointTrial> rows = {row("a=0", 0, Outcome::compileFailed),
                                  row("a=1", 130),
                                  row("a=2", 300, Outcome::stopped),
                                  row("a=3", 110),
                                  row("a=4", 150),
                                  row("a=5", 101.9),
                                  row("a=6", 100)};
  const RecordedTable table = tableOf(rows);
  auto ascending = [](const Point &point) { return double(point.index[0]); };
  const RankReport report = rankReport(table, ascending);
  CHECK(report.trials == 7);
  CHECK(report.timed == 6);
  CHECK(std::isinf(report.regret1));
  CHECK(report.regret5 == doctest::Approx(0.10));
  CHECK(report.regret10 == doctest::Approx(0));
  CHECK(report.firstGood == 6);
  const RankReport constant = rankReport(table, [](const Point &) { return NAN; });
  CHECK(constant.spearman == 0);
  CHECK(constant.firstGood == 6);
}

TEST_CASE("a table keeps what it says of itself") {
  const char *text = "# Comments of several words: are no facts\n# problem: p.mlir --seqlen=8\n"
                     "config,outcome,median_us,spread,max_error,registers,spill_bytes,compile_seconds,message\n"
                     "a=1,measured,5,0,0,0,0,0,\n";
  Result<RecordedTable> table = RecordedTable::parse("t", text);
  REQUIRE_MESSAGE(table.isOk(), table.status().message());
  CHECK(table->fact("problem") == "p.mlir --seqlen=8");
  CHECK(table->fact("gpu").empty());
  CHECK(table->text().find("# problem: p.mlir --seqlen=8\nconfig,") == 0);
  table->setFact("gpu", "NVIDIA H200");
  CHECK(RecordedTable::parse("t", table->text())->fact("gpu") == "NVIDIA H200");
}
