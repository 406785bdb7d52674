// Owns what follows from the time of a step: rates, days, energy, money, and what failures cost.
//   MFU        FLOPs of the model over the peak of 16-bit products: 6 for each active parameter, 3 * 2 (head_dim +
//              value_dim) for each kept pair; what is computed twice does not count
//   goodput    M between failures of any GPU, d a checkpoint, R a restart: a checkpoint each T = sqrt(2 d M) (Young), with
//              Daly's higher terms; lost is d / T + (T / 2 + R) / M. Where a ring of P goes on without a lost rank, since
//              others hold all that it held: d / T + (ring_minutes + a step + R / (P - 1)) / M
#pragma once

#include "compiler/Cost/StepTime.h"

#include <optional>

namespace heddle::cost {

struct Goodput {
  double share = 1;        ///< of the time that training goes on
  double failureHours = 0; ///< between two failures of any GPU
  double checkpointSeconds = 0, intervalSeconds = 0;
  bool hasRings = false; ///< that go on without a lost rank
};

struct Outlook {
  double tokensPerSecond = 0, flopsOfToken = 0, mfu = 0;
  double megawatts = 0;           ///< 0: the power of the GPU is unknown
  std::optional<Goodput> goodput; ///< none: no failure rate
  // What all tokens take that are to be trained, failures included; none where nobody asks:
  std::optional<double> days, gpuHours, megawattHours, money;
};
Outlook outlook(const CostProblem &problem, const Layout &layout, const StepTime &step);

/// Forward and backward, of one token.
double flopsOfToken(const CostProblem &problem);

} // namespace heddle::cost
