// Owns how a forward call over a sequence that fits into no memory is computed piece by piece: each piece is rank 0 of a
// plan over ranks (GroupForm::Piece), all other rows are read where the plan wants them, and results leave before the next
// piece begins. So patterns, windows and the carry are those of calls over ranks.
#pragma once

#include "compiler/Pattern/PatternFile.h"
#include "compiler/Stream/StreamMachine.h"

#include <functional>
#include <vector>

namespace heddle {

struct StreamRequest {
  const PatternFile &file;         ///< of the whole
  const attn::ProblemSizes &sizes; ///< of the whole, with its parameters and tensors of integers
  std::string partDigest;          ///< of the pattern of parts
  std::vector<int64_t> wholes;     ///< its arguments that say where the whole ends
  float scale = 0;
  std::vector<heddle_operand> operands = {}; ///< of the pattern, in memory of the machine
  int64_t pieceRows = 0;                     ///< of every piece but maybe the last
  int64_t firstRow = 0;                      ///< rows before it are keys alone
};

/// What a plan says before anything is read.
struct StreamForecast {
  int64_t pieces = 0, launches = 0;
  int64_t mostWindowRows = 0; ///< of a step
  int64_t readBytes = 0;      ///< of q, k and v, those again that several pieces meet
  int64_t writtenBytes = 0;   ///< of out and lse
  int64_t memoryBytes = 0;    ///< tensors of a piece
  int64_t workspaceBytes = 0; ///< windows, carries and what kernels need
};

/// What a piece gave, in memory of the machine: out [batch, rows, heads, value_dim], lse [batch, heads, rows].
struct StreamPiece {
  RowRange rows;
  const char *out, *lse;
};

/// Takes what pieces give, in order.
class StreamSink {
public:
  virtual ~StreamSink() = default;
  virtual Status take(const StreamPiece &piece, StreamMachine &machine) = 0;
};

/// More pieces are refused: plans of all are made before the first is computed.
inline constexpr int64_t kMostPieces = int64_t(1) << 14;

class StreamCall {
public:
  /// What the request refers to and the machine outlive the call. invalidArgument: pieces too small. unsupported: the call
  /// cannot be shared, or a tensor that a mask reads is not given. unavailable: memory of the machine ends.
  static Result<StreamCall> create(StreamRequest request, StreamMachine &machine);

  /// unsupported: rows of q, k and v are read piece by piece, and the pattern has tensors of which as much would be.
  static Status checkTensors(attn::PatternOp pattern);

  const StreamForecast &forecast() const { return figures; }
  /// The first failure of a piece, a source or a sink, with the rows of the piece.
  Status run(const std::vector<StreamSink *> &sinks, const std::function<void(double share)> &progress = {});

  /// Bytes of memory that a row of a piece takes at most, where the machine needs none for its kernels.
  static int64_t bytesOfRow(const RowSource &source);

private:
  StreamCall(StreamRequest request, StreamMachine &machine) : request(std::move(request)), machine(&machine) {}
  Status planPieces();
  Status allocate();
  void addToForecast(const GroupPlan &plan);
  heddle_attention_args argsOf(const GroupPlan &plan) const;
  Status runPiece(const GroupPlan &plan);

  StreamRequest request;
  StreamMachine *machine;
  std::vector<GroupPlan> plans;
  StreamForecast figures;
  char *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr, *lse = nullptr, *workspace = nullptr;
};

} // namespace heddle
