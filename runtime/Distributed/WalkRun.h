// Owns the memory of one rank on a walk (windows for columns, messages as they travel) and the order in which rows leave,
// arrive, are met and, of gradients, go home. What is computed of a window is its caller's.
#pragma once

#include "runtime/Core/GroupPlan.h"
#include "runtime/Distributed/ShardDevice.h"
#include "runtime/Distributed/RankView.h"

#include <array>
#include <functional>
#include <vector>

namespace heddle {

// One tensor whose rows travel, or whose sums come home.
struct WalkField {
  RowPlace own;         // the rank's own rows
  bool isArray = false; // [batch, heads, rows], else [batch, rows, heads]
  // Of sums: what comes home is all that there is of an element, of any type; and what launches write, not add to.
  bool isAll = false, isWritten = false;
};

class WalkRun {
public:
  // `ownRows`: of the rank, by ranges. `sums`: of fp32, added up in windows and sent home to be added there; may be none. `heads`: of columns. `ofWindows`:
  // heads that windows have.
  WalkRun(std::vector<RowRange> ownRows, const GroupWalk &walk, int32_t rank, int64_t batches, int64_t heads,
          HeadRange ofWindows, std::vector<WalkField> fields, std::vector<WalkField> sums);

  uint64_t workspaceBytes() const;
  void setWorkspace(char *address) { base = address; }

  // Columns of a launch, in its window or among the rank's own.
  RowPlace columns(size_t step, const ShardLaunch &launch, size_t field) const;
  RowPlace sums(size_t step, const ShardLaunch &launch, size_t field) const;

  using Compute = std::function<Status(size_t step, const ShardLaunch &launch)>;
  // What else happens in a step: messages beside those of its columns, work in front of its launches, when what travels is
  // there, and once own rows are copied for the first steps, which is before any launch.
  struct Besides {
    std::function<Status(size_t step, Exchange &exchange)> addMessages = nullptr;
    std::function<Status(size_t step)> begin = nullptr;
    std::function<Status()> copied = nullptr;
    // What travels in the step was waited for before, and what was sent since is not of it.
    std::function<bool(size_t step)> isHere = nullptr;
  };
  Status run(const RankView &ranks, ShardDevice &device, const Compute &compute, const Besides &besides) const;
  // Parts of a walk of one step: columns leave and arrive; own ones are put beside them; sums go home; they are there.
  Status arrive(const RankView &ranks, ShardDevice &device) const;
  Status place(ShardDevice &device) const;
  Status leave(const RankView &ranks, ShardDevice &device) const;
  Status settle(ShardDevice &device) const { return settle(0, device); }
  // Kernels that are enqueued behind it let it begin before them.
  static Status travel(const Exchange &exchange, const RankView &ranks, ShardDevice &device);

private:
  // A hop of the rank, and where its messages lie, one for each field; none: they are sent from, or go to, where the rows
  // are.
  struct Wire {
    const Hop *hop;
    bool isOneMessage; // of all fields, one behind the other
    std::vector<uint64_t> offsets;
    bool isDirect() const { return offsets.empty(); }
  };
  struct StepMemory {
    std::vector<std::vector<uint64_t>> windows, sums; // by window, then by field
    std::vector<Wire> sent, received, sentHome, cameHome;
  };
  static constexpr size_t kSlots = 2; // steps whose memory is in use at a time
  static constexpr uint64_t kAlignment = 256;

  void layStep(const GroupStep &step, StepMemory &memory, uint64_t &used, uint64_t &usedByHome) const;
  Wire layWire(const Hop &hop, const std::vector<WalkField> &of, bool isDirect, uint64_t &used) const;
  bool isWhole(const Hop &hop) const;
  bool isOneMessage(const Hop &hop, const std::vector<WalkField> &of) const;
  const ShardStep &own(size_t step) const { return walk.steps[step].ranks[size_t(rank)]; }
  RowPlace windowOf(const std::vector<WalkField> &of, size_t field, const RowRange &window, char *address) const;
  RowPlace ownFrom(const WalkField &field, int64_t row) const;
  RowPlace fieldWindow(size_t step, size_t window, size_t field) const;
  RowPlace sumWindow(size_t step, size_t window, size_t field) const;
  size_t windowWith(size_t step, const RowRun &run) const;

  // Runs of a hop: their rows here, at the first head that travels, and their place in the message.
  using PlaceOfRun = std::function<RowPlace(const RowRun &run)>;
  enum class Way : uint8_t { intoMessage, outOfMessage };
  void addRuns(const Hop &hop, const WalkField &of, char *message, const PlaceOfRun &here, Way way,
               std::vector<RowCopy> &copies) const;
  using PlaceOfField = std::function<char *(size_t field)>;
  template <class Message>
  void addMessages(const Wire &wire, int32_t peer, const std::vector<WalkField> &of, const PlaceOfField &place,
                   std::vector<Message> &messages) const;
  char *slotOf(size_t step) const { return base + (step % kSlots ? slotBytes[0] : 0); }
  char *fetchedAt(size_t step, const Wire &wire, size_t field) const;
  char *homewardAt(size_t step, const Wire &wire, size_t field) const;
  uint64_t bytesOf(const Hop &hop, const WalkField &field) const;
  // Where rows that travel lie in the window that holds them.
  RowPlace inWindow(size_t step, const RowRun &run, const std::vector<WalkField> &of, size_t field) const;

  bool isQuiet(size_t step, const Besides &besides) const;
  bool isQuietHome(size_t step) const { return memory[step].sentHome.empty() && memory[step].cameHome.empty(); }
  Status fetch(size_t step, const RankView &ranks, ShardDevice &device, const Besides &besides) const;
  // In front of the message, whose rows may lie among blanks; or beside it, of a rank that would only wait for it.
  bool isClearedBeside(size_t step) const;
  Status clearBlanks(size_t step, ShardDevice &device, Queue queue) const;
  Status copyOwnRows(size_t step, ShardDevice &device) const;
  Status clearSums(size_t step, ShardDevice &device) const;
  static Status bring(const WalkField &field, const RowCopy &rows, ShardDevice &device) {
    return field.isAll ? device.copy(rows, Queue::compute) : device.add({rows}, Queue::compute);
  }
  Status sendHome(size_t step, const RankView &ranks, ShardDevice &device) const;
  Status addOwnSums(size_t step, ShardDevice &device) const;
  Status settle(size_t step, ShardDevice &device) const;
  Status meetOwnRows(size_t step, size_t window, const std::function<Status(const RowRange &common)> &meet) const;

  const std::vector<RowRange> ownRows;
  const GroupWalk &walk;
  int32_t rank;
  int64_t batches, heads;
  HeadRange ofWindows;
  std::vector<WalkField> fields, sumFields;
  std::vector<StepMemory> memory;
  using SlotBytes = std::array<uint64_t, kSlots>; // the most of the steps that have the slot
  SlotBytes slotBytes = {}, homeBytes = {};
  char *base = nullptr;
};

} // namespace heddle
