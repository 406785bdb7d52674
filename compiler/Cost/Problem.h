// Owns the question: a model, its attention, a cluster, prices, and which ways of dividing the work may be taken. What is
// left open is searched.
#pragma once

#include "compiler/Cost/Machine.h"
#include "compiler/Cost/Model.h"
#include "compiler/Cost/Rates.h"

#include <functional>
#include <optional>

namespace heddle::cost {

enum class Schedule { gpipe, oneForwardOneBackward, zeroBubble, dualPipe };
/// none; sweeps: outputs of norms and activation functions, and what is projected from latents; selective: scores in memory;
/// products: all but a layer's input and what attention gives; full: all but a layer's input.
enum class Recompute { none, sweeps, selective, products, full };
enum class ContextScheme { ring, gather, ulysses };
inline constexpr int kSchedules = 4, kRecomputes = 5, kContextSchemes = 3;
const char *nameOf(Schedule schedule);
const char *nameOf(Recompute recompute);
const char *nameOf(ContextScheme scheme);

/// How the work is divided. tensor * context * pipeline * data is the number of GPUs; experts lie within context * data.
struct Layout {
  int64_t tensor = 1, pipeline = 1, virtualStages = 1, context = 1, data = 1, expert = 1, zero = 0, microBatch = 1;
  Schedule schedule = Schedule::oneForwardOneBackward;
  Recompute recompute = Recompute::none;
  ContextScheme scheme = ContextScheme::ring;
  bool splitsSequence = true;                                  ///< norms and residuals are divided by tensor, too
  bool offloadsOptimizer = false, offloadsActivations = false; ///< to the host's memory

  int64_t replicas() const { return context * data; } ///< of parameters that are no experts'
  std::string str() const;
};

/// What one sequence on so many ranks looks like to its heaviest rank.
struct ContextShare {
  double balance = 1;      ///< kept pairs over the mean
  double keysReceived = 0; ///< of each head of k and v, forward
  std::string layout = "contiguous";
};

/// Layers that attend alike.
struct AttentionSpec {
  std::string pattern;               ///< name or file
  std::vector<std::string> sizes;    ///< "left=4095"
  std::vector<std::string> operands; ///< "cu=FILE:TENSOR", FILE beside that of the problem
  int64_t layers = 0;
  AttentionKernel kernel = AttentionKernel::heddle;
  std::optional<double> givenForward, givenBackward; ///< TFLOP/s in place of any table
  // What the analysis of the pattern says of one sequence:
  double pairs = 0;          ///< kept, of all query heads
  double workspaceBytes = 0; ///< of backward, for one sequence of all heads
  AttentionRate rate = {};
  std::function<ContextShare(int64_t ranks)> share = {};
};

/// Which communication is hidden behind computation where it can be.
struct Overlap {
  bool tensor = false, pipeline = true, data = true, context = true;
  double units = 0; ///< of a GPU that do nothing but communicate
};

/// Values that may be taken; an empty list leaves it to the search.
struct LayoutChoices {
  std::vector<int64_t> tensor, pipeline, virtualStages, context, data, expert, zero, microBatch;
  std::vector<Schedule> schedule;
  std::vector<Recompute> recompute;
  std::vector<ContextScheme> scheme;
  std::vector<bool> splitsSequence, offloadsOptimizer, offloadsActivations;
};

struct Precision {
  bool isFp8 = false;                                                ///< of products; attention stays in 16 bits
  double parameterBytes = 2, gradientBytes = 4, optimizerBytes = 12; ///< of each parameter
  /// Gradients of a micro-batch are written in 16 bits and then added to the others, by no product that does both.
  bool addsGradientsApart = false;
};

struct Money {
  double gpuHour = 0, kilowattHour = 0; ///< 0: not asked
};

struct Failures {
  double gpuHours = 0; ///< between two failures of one GPU; 0: none
  double restartMinutes = 10;
  /// From a failure until the other ranks of a ring go on without the lost one; none: they do not.
  std::optional<double> ringMinutes = {};
  double checkpointGBps = 2; ///< that a host writes
};

struct CostProblem {
  std::string name, where; ///< where: the file
  ModelSpec model;
  ParameterCounts counts = {};          ///< countParameters of the model
  std::vector<AttentionSpec> attention; ///< layers sum to the model's
  int64_t context = 0;                  ///< tokens of a sequence
  double batchTokens = 0;               ///< of a step
  double trainTokens = 0;               ///< 0: not asked
  Precision precision;
  Cluster cluster;
  LayoutChoices choices;
  Overlap overlap;
  Money money;
  Failures failures;

  int64_t sequences() const { return int64_t(batchTokens / double(context) + 0.5); }
};

} // namespace heddle::cost
