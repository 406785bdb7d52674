//===- Scene.h - one call, and its parts over ranks -------------------------------===//
// Owns a call's pattern, arguments and tensors, which lie in memory that all processes of the test share; how its rows lie over
// groups of each size; and what one call gives.
#ifndef HEDDLE_TESTS_RANKS_SCENE_H
#define HEDDLE_TESTS_RANKS_SCENE_H

#include "compiler/Library/heddle_compiler.h"
#include "runtime/Core/Status.h"
#include "runtime/Core/GroupPlan.h"
#include "runtime/Core/Kinds.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace heddle::ranks {

template <class T> T sized() {
  T made = {};
  made.struct_size = sizeof made;
  return made;
}

// What a call of the C interface returned, with its message.
Status said(heddle_status status);

struct SceneSpec {
  std::string pattern;             // a name of the library, or a text
  std::vector<int64_t> sizes = {}; // its arguments in their order
  int64_t rows = 131, heads = 4, kvHeads = 2, dim = 16, batch = 1;
  int32_t dtype = HEDDLE_BF16;
  std::string layout = "contiguous", form = "gather";
  int headRanks = 1; // teams of so many exchange heads, in groups that they divide
  bool isPlacementFree = false;
  bool writesQueryGradient = false; // d_q is of q's type
  bool isTf32 = false;              // products of its calls

  std::string name() const;
  std::string formOf(int ranks) const;
};

// By how much results may be others than expected; nothing: not at all, bit by bit.
struct Tolerance {
  double ofLargest = 0; // of a field
  double ofMeans = 0;   // at least, of out: means of values of at most 1
};

// Tensors are [batch, rows, heads, dim], arrays [batch, heads, rows] of fp32; gradients are fp32, but d_q as the scene says.
struct Field {
  Role role;
  bool isResult, isArray, isOfKeys, isFloat;
};
extern const std::vector<Field> kFields;

// A byte string for each of kFields.
using Bytes = std::vector<uint8_t *>;

class Scene {
public:
  static Result<std::unique_ptr<Scene>> make(const SceneSpec &spec);
  Scene(const Scene &) = delete;
  ~Scene();

  // Made once, before ranks are started.
  Result<const heddle_group_plan *> plan(int ranks);

  int64_t rowsOf(const heddle_group_plan &plan, int rank) const;
  DType typeOf(const Field &field) const;
  size_t bytesOf(const Field &field, int64_t rows) const;
  // Between all rows and those of a rank, one behind the other.
  void moveRows(const heddle_group_plan &plan, int rank, size_t field, uint8_t *whole, uint8_t *share,
                bool isToWhole) const;
  // Arguments with tensors of so many rows at these addresses.
  heddle_attention_args arguments(const std::vector<void *> &addresses, int64_t rows, bool isBackward) const;
  // Sets every element of results to NaN.
  void spoil(const Bytes &results) const;
  // "" or the first result that is another one than wanted, among the rows of a rank; by a part of the largest that is
  // expected.
  std::string difference(const heddle_group_plan &plan, int rank, const Bytes &got, const Bytes &wanted,
                         const Tolerance &tolerance) const;
  Bytes share(int64_t rows) const;

  const SceneSpec spec;
  heddle_pattern *whole = nullptr, *part = nullptr;     // one for all scenes of a pattern
  std::vector<heddle_operand> operands, operandsOfPart; // of a call; of a launch of the pattern of parts
  Bytes tensors;                                        // inputs; results as ranks wrote them
  Bytes expected;                                       // results of one call

private:
  explicit Scene(const SceneSpec &spec) : spec(spec) {}
  Status open();
  void fill();
  double largestExpected(size_t field) const;

  std::map<int, heddle_group_plan *> plans;
  mutable std::map<size_t, double> largest; // by field, of those that were asked for
};

} // namespace heddle::ranks

#endif
