//===- LaunchPlan.h - how a kernel is launched, as data ---------------------===//
// Owns everything the runtime must know to launch the kernels of one call: grid, block, shared memory,
// workspace, clears, tensor maps and the layout of the parameter block. Written by codegen/Config, stored
// as text in the kernel record, evaluated by runtime/Device. Same plan, same text, byte for byte.
#pragma once

#include "runtime/Core/ArgumentBounds.h"
#include "runtime/Core/DType.h"
#include "runtime/Core/LaunchExpr.h"

#include <algorithm>
#include <array>

namespace heddle {

// A device pointer of the call: the number of a role, of an operand of the pattern, of a region of the plan's
// workspace, of the argument of the pattern whose gradient lies there.
struct PointerSource {
  enum class Kind : uint8_t { role, operand, region, gradient };
  Kind kind = Kind::role;
  int64_t index = 0;

  PointerSource(Role role = Role::q) : index(int64_t(role)) {}
  static PointerSource operand(int64_t argument) { return {Kind::operand, argument}; }
  static PointerSource region(int64_t number) { return {Kind::region, number}; }
  static PointerSource gradient(int64_t argument) { return {Kind::gradient, argument}; }

  bool is(Role role) const { return *this == PointerSource(role); }
  // "q", ..., "carry_out", "operand3", "region0", "gradient3".
  std::string str() const;
  static Result<PointerSource> parse(std::string_view text);
  bool operator==(const PointerSource &o) const { return kind == o.kind && index == o.index; }

private:
  PointerSource(Kind kind, int64_t index) : kind(kind), index(index) {}
};

// Workspace that the caller gives, under a name. What it holds lives from launch `first` to launch `last`: regions
// whose lives do not meet may lie in the same bytes.
struct WorkspaceRegion {
  std::string name;
  LaunchExpr bytes;
  int64_t first = 0, last = 0;
};

// Before the launch, `words` 32-bit words from byte `offset` of `target` are set to `value`.
struct ClearSpec {
  PointerSource target;
  LaunchExpr offset;
  LaunchExpr words;
  uint32_t value = 0;
};

// One tiled tensor map. Dimensions innermost first; strideBytes[i] belongs to dimension i + 1.
// Swizzle is the span in bytes: 0, 32, 64 or 128. Keys outside the tensor read as zero.
struct TensorMapSpec {
  PointerSource source;
  DType dtype = kDefaultDType;
  bool isTf32 = false; // floats arrive as the nearest numbers of 11 bits, which products of tf32 take
  LaunchExpr offsetBytes;
  std::vector<LaunchExpr> dims;          // rank 1 to 5
  std::vector<LaunchExpr> strideBytes;   // rank - 1
  std::vector<LaunchExpr> box;           // rank, elements
  std::vector<LaunchExpr> elementStride; // rank; empty means all 1
  int swizzleBytes = 0;
};

// One field of the parameter block, at byte `offset`.
struct SlotSpec {
  enum class Kind : uint8_t { i32, i64, f32, ptr, tensorMap };
  int64_t offset = 0;
  Kind kind = Kind::i32;
  LaunchExpr expr;       // i32, i64: the value; ptr: bytes behind what `pointer` names
  PointerSource pointer; // ptr
  int64_t tensorMap = 0; // tensorMap: index into LaunchPlan::tensorMaps
                         // f32 has one source, scale_log2
  int64_t bytes() const;
  int64_t alignment() const;
};

// Most bytes of a parameter block aligned to 64: drivers for CUDA 12.1 and later take 32764, on compute capability 7.0
// and later.
inline constexpr int64_t kMaxParamBytes = 32704;
inline constexpr int64_t kLargeParamDriver = 12010; // as cuDriverGetVersion counts; older drivers take the bytes below
inline constexpr int64_t kSmallParamBytes = 4096;
inline constexpr int64_t kParamAlignment = 64; // of a block that holds tensor maps

// One kernel and how it is launched. Building: set the fields, append slots in order.
struct KernelLaunch {
  std::string entry = "heddle_kernel";
  std::array<LaunchExpr, 3> grid = {1, 1, 1};
  LaunchExpr block = 1;          // threads, one dimension
  LaunchExpr sharedBytes = 0;    // dynamic shared memory
  std::vector<ClearSpec> clears; // before this launch
  std::vector<TensorMapSpec> tensorMaps;
  std::vector<SlotSpec> slots;
  int64_t paramBytes = 0; // size of the parameter block; append* keep it at the natural struct size

  // Calls f(source) for every pointer of this launch.
  template <class F> void forEachPointer(F &&f) const {
    for (const ClearSpec &clear : clears)
      f(clear.target);
    for (const TensorMapSpec &map : tensorMaps)
      f(map.source);
    for (const SlotSpec &slot : slots)
      if (slot.kind == SlotSpec::Kind::ptr)
        f(slot.pointer);
  }

  // Append a slot at the next naturally aligned offset and return that offset (tensor maps: 64).
  int64_t appendI32(LaunchExpr value);
  int64_t appendI64(LaunchExpr value);
  int64_t appendPointer(PointerSource source);
  int64_t appendScaleLog2();
  int64_t appendTensorMap(TensorMapSpec spec); // appends to tensorMaps as well

private:
  int64_t append(SlotSpec slot);
};

inline constexpr int kMaxLaunches = 8; // of one plan
inline constexpr int kMaxRegions = 24; // of one plan

// What calls a plan serves; the runtime refuses others by it. One that names no kind serves nothing and is not valid.
struct PlanService {
  PlanService() = default;
  explicit PlanService(Kind kind); // with every role of the kind

  std::optional<Kind> kind; // without gradients of arguments, which pointers say
  // Of the kind, in the order of its table: roles that are missing here must not be given.
  std::vector<Role> roles;
  QOriginRule qOrigin = QOriginRule::given;
  int64_t keyOriginStep = 1; // the position of key 0 must be a multiple of it; 0: calls have all keys (checkAllKeys)
  std::vector<ArgumentBound> bounds; // of what calls give the pattern

  bool has(Role role) const { return std::find(roles.begin(), roles.end(), role) != roles.end(); }
};

// A value type without behaviour beyond text: kernels that are launched one after the other on one stream. Launch i
// runs code i of the record, or its only one (KernelImages.h).
struct LaunchPlan {
  LaunchPlan() = default;
  explicit LaunchPlan(PlanService serves) : serves(std::move(serves)) {}

  PlanService serves;
  std::vector<WorkspaceRegion> regions; // of the workspace, which is 256-byte aligned
  // Rows of one round: all launches are made for these rows, then for the next ones. 0: for all rows at once.
  LaunchExpr roundRows = 0;
  std::vector<KernelLaunch> launches;

  // A region that lives through one launch, or through those from `first` to `last`.
  PointerSource appendRegion(std::string name, LaunchExpr bytes, int64_t first = 0, int64_t last = 0);

  // Calls f(source) for every pointer of every launch.
  template <class F> void forEachPointer(F &&f) const {
    for (const KernelLaunch &launch : launches)
      launch.forEachPointer(f);
  }

  // The oldest driver that takes so large parameter blocks, as cuDriverGetVersion counts; 0: every one.
  int64_t minDriver() const;

  // 1 + the largest run-time size index that any expression uses.
  int64_t paramCount() const;
  // For each of them: some expression uses it. A number between may belong to a tensor whose length no kernel asks for.
  std::vector<bool> usedParams() const;
  // 1 to kMaxLaunches launches, slots inside their block, aligned and not overlapping, map indices and ranks right,
  // regions and roles that there are; parse checks it too. The failure names the slot, map, region or role.
  Status validate() const;

  std::string str() const;
  // The inverse of str. Failures name the line and what was expected there.
  static Result<LaunchPlan> parse(std::string_view text);
};

// Where the regions of a plan lie: each at the first multiple of 256 bytes at which no region lies whose life meets its
// own.
struct WorkspaceLayout {
  int64_t offset[kMaxRegions] = {}, bytes[kMaxRegions] = {};
  int64_t totalBytes = 0;
};

// unsupported: a negative size, or more than 2^40 bytes. Allocates only on failure.
Result<WorkspaceLayout> evaluateWorkspace(const LaunchPlan &plan, const LaunchSymbols &symbols);

// The geometry of one launch.
struct LaunchGeometry {
  int64_t grid[3] = {1, 1, 1};
  int64_t block = 1;
  int64_t sharedBytes = 0;
  // A zero somewhere in the grid: there is nothing to compute.
  bool isEmpty() const { return grid[0] == 0 || grid[1] == 0 || grid[2] == 0; }
};

// Refuses (unsupported) a geometry outside the hardware limits that all supported GPUs share
// (grid 2^31-1 x 65535 x 65535, 1024 threads) and negative sizes. Allocates only on failure.
Result<LaunchGeometry> evaluateGeometry(const KernelLaunch &launch, const LaunchSymbols &symbols);

} // namespace heddle
