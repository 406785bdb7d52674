// A seeded model of a tiled kernel: plausible times, interactions between knobs, every kind of failure.
// Nothing here was measured; strategies only need the shape. The model is integer-seeded and uses no
// library distribution, so tables are the same on every machine.
#ifndef HEDDLE_TESTS_UNIT_TUNER_TABLES_H
#define HEDDLE_TESTS_UNIT_TUNER_TABLES_H

#include "support/TestSpace.h"
#include "tests/recorded/MemoryTrialSink.h"
#include "tests/recorded/RecordedTable.h"
#include "tuner/Search/Strategies.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace heddle::tuner {

struct ModelPoint {
  int64_t blockM, blockN, warps, stages, order;

  int64_t smemBytes() const { return 256 * (blockM + 2 * stages * blockN); }
  int64_t registers() const { return 40 + (blockM * blockN + blockM * 128) / (32 * warps); }

  std::string config() const {
    const char *orders[] = {"linear", "longest", "snake"};
    return "block_m=" + std::to_string(blockM) + " block_n=" + std::to_string(blockN) +
           " warps=" + std::to_string(warps) + " stages=" + std::to_string(stages) + " order=" + orders[order];
  }

  // What a cost model could know beforehand: tile sizes, registers, warps without rows; nothing of the
  // other interactions and of the roughness.
  static double prior(const PointValues &values) {
    const ModelPoint p{values["block_m"], values["block_n"], values["warps"], values["stages"], 0};
    const double waste = 64.0 / double(p.blockM) + 32.0 / double(p.blockN);
    const double idleWarps = p.warps * 16 > p.blockM ? 0.5 : 0;
    return waste + double(p.registers()) / 255 + (p.stages == 1 ? 0.5 : 0) + idleWarps;
  }
};

inline PointTrial modelTrial(const ModelPoint &p, double roughness, std::mt19937_64 &random) {
  auto unit = [&] { return double(random() >> 11) / double(uint64_t(1) << 53); };
  PointTrial trial;
  trial.config = p.config();
  trial.registers = std::min<int64_t>(p.registers(), 255);
  trial.compileSeconds = std::round((0.3 + 0.002 * double(p.registers()) + 0.2 * unit()) * 1e3) / 1e3;
  double us = 700 * (1 + 40.0 / double(p.blockM) + 24.0 / double(p.blockN));
  us *= p.stages == 1 ? 1.6 : 1 + 0.05 * std::abs(double(p.stages) - 2.5);
  us *= p.warps * 16 > p.blockM ? 1.35 : 1 + 0.1 * std::abs(double(p.blockM) / 32 - double(p.warps));
  us *= p.smemBytes() > 51200 && p.registers() < 128 ? 1.2 : 1;
  us *= p.order == 1 ? 0.93 : p.order == 2 ? 0.97 : 1;
  us *= 1 + roughness * (unit() - 0.5);
  trial.spread = std::round((0.003 + 0.01 * unit()) * 1e5) / 1e5;
  trial.outcome = Outcome::measured;
  trial.medianUs = trial.minUs = std::round(us * 100) / 100;
  trial.maxError = 0.004;
  const double fate = unit();
  auto fail = [&](Outcome outcome, const char *message) {
    trial.outcome = outcome;
    trial.message = message;
    trial.medianUs = trial.minUs = trial.spread = 0;
  };
  if (p.registers() > 255) {
    trial.spillBytes = 8 * (p.registers() - 255);
    fail(Outcome::spilled, "spills to local memory");
  } else if (fate < 0.02) {
    fail(Outcome::compileFailed, "ptxas: out of barriers, line 7");
  } else if (fate < 0.03) {
    fail(Outcome::launchFailed, "CUDA_ERROR_ILLEGAL_ADDRESS");
  } else if (fate < 0.04) {
    fail(Outcome::timedOut, "launch did not end within 1 s");
  } else if (fate < 0.08) {
    // A wrong kernel is often a fast one: the record keeps no time for it.
    trial.maxError = 0.7;
    fail(Outcome::wrong, "max error 0.7, allowed 0.02");
  }
  return trial;
}

inline RecordedTable modelTable(uint64_t seed, double roughness = 0.1) {
  std::mt19937_64 random(seed);
  std::vector<PointTrial> trials;
  for (int64_t blockM : {32, 64, 128, 192})
    for (int64_t blockN : {32, 48, 64, 96, 128})
      for (int64_t warps : {4, 8})
        for (int64_t stages : {1, 2, 3, 4})
          for (int64_t order : {0, 1, 2}) {
            const ModelPoint p{blockM, blockN, warps, stages, order};
            if (p.smemBytes() <= 101376)
              trials.push_back(modelTrial(p, roughness, random));
          }
  return RecordedTable::create("model " + std::to_string(seed), std::move(trials)).take();
}

inline std::function<double(const Point &)> modelPrior(const SearchSpace &space) {
  return [&space](const Point &point) { return ModelPoint::prior(valuesOf(space, point)); };
}

} // namespace heddle::tuner

#endif
