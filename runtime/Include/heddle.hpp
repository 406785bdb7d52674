//===- heddle.hpp - heddle.h for C++17 --------------------------------------===//
// Owns nothing that heddle.h does not: handles that close themselves, failures as values that hold their message, arguments
// that cannot be forgotten to be zero. Header only, no exceptions of its own; std::bad_alloc where a message, an argument list
// or a string is copied. The promises of heddle.h hold; launches through this header allocate nothing either.
//
//   auto store = heddle::api::Store::open("kernels.heddle", HEDDLE_OPEN_IMMUTABLE);
//   if (!store) return complain(store.status().message());
//
// A moved-from handle is empty: only to be destroyed or assigned to.
#ifndef HEDDLE_HPP
#define HEDDLE_HPP

#include "heddle.h"
#include "heddle_arena.h"
#include "heddle_stats.h"

#include <array>
#include <cassert>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace heddle::api {

// HEDDLE_OK, or a code and what was wrong. A value.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(heddle_status code, std::string message) : statusCode(code), text(std::move(message)) {}
  // What the last call of this thread returned, with its message.
  static Status of(heddle_status code) { return code == HEDDLE_OK ? Status() : Status(code, heddle_last_message()); }

  bool isOk() const { return statusCode == HEDDLE_OK; }
  explicit operator bool() const { return isOk(); }
  heddle_status code() const { return statusCode; }
  const std::string &message() const { return text; } // "" if ok

private:
  heddle_status statusCode = HEDDLE_OK;
  std::string text;
};

// A T, or the status that says why there is none. Dereferencing one without a value is the caller's error.
template <class T> class [[nodiscard]] Result {
public:
  Result(T value) : content(std::move(value)) {}
  Result(Status failure) : failure(std::move(failure)) { assert(!this->failure.isOk()); }

  explicit operator bool() const { return content.has_value(); }
  const Status &status() const { return failure; }
  T &operator*() { return *content; }
  const T &operator*() const { return *content; }
  T *operator->() { return &*content; }
  const T *operator->() const { return &*content; }

private:
  Status failure;
  std::optional<T> content;
};

// A contiguous tensor at an address in device memory; sizes of batch, rows, heads, dim.
inline heddle_tensor contiguous(void *address, heddle_dtype dtype, const std::array<int64_t, 4> &size) {
  const auto [batch, rows, heads, dim] = size;
  return {address, dtype, 0, {batch, rows, heads, dim}, {rows * heads * dim, heads * dim, dim, 1}};
}

// The arguments of a call: the fields of heddle_attention_args, all zero at first, and what the pattern takes beside them.
// A value; copies share nothing.
class Arguments : public heddle_attention_args {
public:
  Arguments() : heddle_attention_args{} { struct_size = sizeof(heddle_attention_args); }

  // Argument number `id` of the pattern: a run-time size, a run-time number, a tensor in device memory. Each id once.
  Arguments &size(int32_t id, int64_t value) { return add(id, HEDDLE_OPERAND_INT).i64 = value, *this; }
  Arguments &number(int32_t id, double value) { return add(id, HEDDLE_OPERAND_FLOAT).f64 = value, *this; }
  Arguments &tensor(int32_t id, const void *address) { return add(id, HEDDLE_OPERAND_POINTER).ptr = address, *this; }

  // As the C functions take it; valid while this object lives and is not changed. operands and operand_count are those of
  // this object, whatever the fields of that name hold.
  heddle_attention_args c() const {
    heddle_attention_args args = *this;
    args.operands = values.data();
    args.operand_count = values.size();
    return args;
  }

private:
  decltype(heddle_operand::value) &add(int32_t id, heddle_operand_kind kind) {
    values.push_back({id, kind, {}});
    return values.back().value;
  }
  std::vector<heddle_operand> values;
};

// Which kernel is wanted, of kind "forward" unless `kind` is set. The text of `pattern` must live as long as this.
struct Query : heddle_kernel_query {
  explicit Query(const char *pattern) : heddle_kernel_query{} {
    struct_size = sizeof(heddle_kernel_query);
    this->pattern = pattern;
  }
  // For calls like this one.
  Query(const char *pattern, const heddle_attention_args &typical) : Query(pattern) {
    dtype = typical.q.dtype;
    head_dim = typical.q.size[3], value_dim = typical.v.size[3];
    batch = typical.q.size[0], heads = typical.q.size[2], kv_heads = typical.k.size[2], seqlen_q = typical.q.size[1];
  }
};

// Databases and packages. Thread safe, but for add.
class Store {
public:
  // flags: HEDDLE_OPEN_*. Failures as of heddle_store_open.
  static Result<Store> open(const std::string &path, uint32_t flags = 0) {
    heddle_store *store = nullptr;
    const heddle_status status = heddle_store_open(path.c_str(), flags, &store);
    return status == HEDDLE_OK ? Result<Store>(Store(store)) : Result<Store>(Status::of(status));
  }
  // Asked after those before it. Not while another thread uses the store.
  Status add(const std::string &path, uint32_t flags = 0) {
    return Status::of(heddle_store_add(get(), path.c_str(), flags));
  }
  heddle_store *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(heddle_store *store) const { heddle_store_close(store); }
  };
  explicit Store(heddle_store *store) : handle(store) {}
  std::unique_ptr<heddle_store, Close> handle;
};

// A GPU. Thread safe.
class Device {
public:
  // -1: that of the context which is current on this thread, or GPU 0.
  static Result<Device> open(int32_t ordinal = -1) {
    heddle_device *device = nullptr;
    const heddle_status status = heddle_device_open(ordinal, &device);
    return status == HEDDLE_OK ? Result<Device>(Device(device)) : Result<Device>(Status::of(status));
  }
  heddle_device *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(heddle_device *device) const { heddle_device_close(device); }
  };
  explicit Device(heddle_device *device) : handle(device) {}
  std::unique_ptr<heddle_device, Close> handle;
};

// A call whose arguments are frozen. Thread safe; outlives its kernel.
class Prepared {
public:
  // On a CUstream or cudaStream_t; null: the default stream.
  Status launch(void *stream = nullptr) const { return Status::of(heddle_prepared_launch(handle.get(), stream)); }
  heddle_prepared *get() const { return handle.get(); }

private:
  friend class Kernel;
  struct Close {
    void operator()(heddle_prepared *prepared) const { heddle_prepared_close(prepared); }
  };
  explicit Prepared(heddle_prepared *prepared) : handle(prepared) {}
  std::unique_ptr<heddle_prepared, Close> handle;
};

// A loaded kernel. Thread safe; outlives store and device.
class Kernel {
public:
  // The best one for the query; NOT_FOUND if nothing fits.
  static Result<Kernel> find(const Store &store, const Device &device, const heddle_kernel_query &query) {
    heddle_kernel *kernel = nullptr;
    const heddle_status status = heddle_kernel_find(store.get(), device.get(), &query, &kernel);
    return status == HEDDLE_OK ? Result<Kernel>(Kernel(kernel)) : Result<Kernel>(Status::of(status));
  }
  // Its strings live as long as the kernel.
  heddle_kernel_info info() const {
    heddle_kernel_info info = {};
    info.struct_size = sizeof(info);
    const heddle_status status = heddle_kernel_get_info(get(), &info);
    assert(status == HEDDLE_OK);
    (void)status;
    return info;
  }
  // Bytes; the workspace fields are not looked at.
  Result<uint64_t> workspaceBytes(const Arguments &arguments) const {
    const heddle_attention_args args = arguments.c();
    uint64_t bytes = 0;
    const heddle_status status = heddle_kernel_workspace(get(), &args, &bytes);
    return status == HEDDLE_OK ? Result<uint64_t>(bytes) : Result<uint64_t>(Status::of(status));
  }
  Status launch(const Arguments &arguments, void *stream = nullptr) const {
    const heddle_attention_args args = arguments.c();
    return Status::of(heddle_kernel_launch(get(), stream, &args));
  }
  Result<Prepared> prepare(const Arguments &arguments) const {
    const heddle_attention_args args = arguments.c();
    heddle_prepared *prepared = nullptr;
    const heddle_status status = heddle_prepare(get(), &args, &prepared);
    return status == HEDDLE_OK ? Result<Prepared>(Prepared(prepared)) : Result<Prepared>(Status::of(status));
  }
  heddle_kernel *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(heddle_kernel *kernel) const { heddle_kernel_close(kernel); }
  };
  explicit Kernel(heddle_kernel *kernel) : handle(kernel) {}
  std::unique_ptr<heddle_kernel, Close> handle;
};

// How calls lie over the ranks of a group. Thread safe.
class GroupPlan {
public:
  // Takes what heddle_group_plan_make made.
  explicit GroupPlan(heddle_group_plan *plan) : handle(plan) {}
  // Failures as of heddle_group_plan_parse.
  static Result<GroupPlan> parse(const std::string &text) {
    heddle_group_plan *plan = nullptr;
    const heddle_status status = heddle_group_plan_parse(text.c_str(), &plan);
    return status == HEDDLE_OK ? Result<GroupPlan>(GroupPlan(plan)) : Result<GroupPlan>(Status::of(status));
  }
  // Its strings live as long as the plan.
  heddle_group_plan_info info() const {
    heddle_group_plan_info info = {};
    info.struct_size = sizeof(info);
    const heddle_status status = heddle_group_plan_get_info(get(), &info);
    assert(status == HEDDLE_OK);
    (void)status;
    return info;
  }
  // That the rank has.
  Result<int64_t> rows(int32_t rank) const {
    int64_t rows = 0;
    const heddle_status status = heddle_group_plan_rows(get(), rank, &rows);
    return status == HEDDLE_OK ? Result<int64_t>(rows) : Result<int64_t>(Status::of(status));
  }
  heddle_group_plan *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(heddle_group_plan *plan) const { heddle_group_plan_close(plan); }
  };
  std::unique_ptr<heddle_group_plan, Close> handle;
};

// One rank's end of a group; for one thread, but for abort. Kernels are those of the plan's pattern of parts.
class Group {
public:
  using Id = std::array<char, HEDDLE_GROUP_ID_BYTES>;
  using Kernels = std::vector<const heddle_kernel *>;

  // One rank makes it, all others get it.
  static Result<Id> makeId() {
    Id id = {};
    const heddle_status status = heddle_group_make_id(id.data());
    return status == HEDDLE_OK ? Result<Id>(id) : Result<Id>(Status::of(status));
  }
  // Collective: a GPU for each rank. limitSeconds, that a rank waits for others; 0: 30.
  static Result<Group> open(const Device &device, const Id &id, int32_t rank, int32_t ranks, double limitSeconds = 0) {
    heddle_group *group = nullptr;
    return made(heddle_group_open(device.get(), id.data(), rank, ranks, limitSeconds, &group), group);
  }
  // Over an ncclComm_t, which outlives the group.
  static Result<Group> openNccl(void *communicator, int32_t rank, int32_t ranks, double limitSeconds = 0) {
    heddle_group *group = nullptr;
    return made(heddle_group_open_nccl(communicator, rank, ranks, limitSeconds, &group), group);
  }
  // Ranks that are threads of this process, on its processors (heddle_group_run of heddle_compiler.h).
  static Result<std::vector<Group>> openLocal(int32_t ranks, double limitSeconds = 0) {
    std::vector<heddle_group *> groups(ranks > 0 ? size_t(ranks) : 0, nullptr);
    const heddle_status status = heddle_group_open_local(ranks, limitSeconds, groups.data());
    if (status != HEDDLE_OK)
      return Status::of(status);
    std::vector<Group> opened;
    for (heddle_group *group : groups)
      opened.push_back(Group(group));
    return Result<std::vector<Group>>(std::move(opened));
  }
  // Bytes of the rank's share of such calls; the workspace fields are not looked at.
  Result<uint64_t> workspaceBytes(const GroupPlan &plan, const Kernels &kernels, const char *kind,
                                  const Arguments &arguments) const {
    const heddle_attention_args args = arguments.c();
    uint64_t bytes = 0;
    const heddle_status status =
        heddle_group_workspace(get(), plan.get(), kernels.data(), int32_t(kernels.size()), kind, &args, &bytes);
    return status == HEDDLE_OK ? Result<uint64_t>(bytes) : Result<uint64_t>(Status::of(status));
  }
  // Collective. kind: "forward" or "backward".
  Status launch(const GroupPlan &plan, const Kernels &kernels, const char *kind, const Arguments &arguments,
                void *stream = nullptr) {
    const heddle_attention_args args = arguments.c();
    return Status::of(
        heddle_group_launch(get(), plan.get(), kernels.data(), int32_t(kernels.size()), kind, stream, &args));
  }
  // For what was enqueued on the stream; UNAVAILABLE names a rank that is lost.
  Status wait(void *stream = nullptr) { return Status::of(heddle_group_wait(get(), stream)); }
  // From any thread.
  Status abort(const char *why) { return Status::of(heddle_group_abort(get(), why)); }
  heddle_group *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(heddle_group *group) const { heddle_group_close(group); }
  };
  explicit Group(heddle_group *group) : handle(group) {}
  static Result<Group> made(heddle_status status, heddle_group *group) {
    return status == HEDDLE_OK ? Result<Group>(Group(group)) : Result<Group>(Status::of(status));
  }
  std::unique_ptr<heddle_group, Close> handle;
};

// Workspaces of a memory pool of the GPU. Thread safe.
class Arena {
public:
  // limitBytes in use at a time, 0: no limit; what is held beyond highWaterBytes goes back to the GPU, 0: nothing does.
  static Result<Arena> open(const Device &device, uint64_t limitBytes = 0, uint64_t highWaterBytes = 0) {
    heddle_arena_options options = {};
    options.struct_size = sizeof(options);
    options.limit_bytes = limitBytes, options.high_water_bytes = highWaterBytes;
    return open(device, options);
  }
  static Result<Arena> open(const Device &device, const heddle_arena_options &options) {
    heddle_arena *arena = nullptr;
    const heddle_status status = heddle_arena_open(device.get(), &options, &arena);
    return status == HEDDLE_OK ? Result<Arena>(Arena(arena)) : Result<Arena>(Status::of(status));
  }
  Result<void *> take(uint64_t bytes, void *stream = nullptr) const {
    void *memory = nullptr;
    const heddle_status status = heddle_arena_take(get(), stream, bytes, &memory);
    return status == HEDDLE_OK ? Result<void *>(memory) : Result<void *>(Status::of(status));
  }
  Status give(void *memory, void *stream = nullptr) const {
    return Status::of(heddle_arena_give(get(), stream, memory));
  }
  Status trim(uint64_t keepBytes = 0) const { return Status::of(heddle_arena_trim(get(), keepBytes)); }
  Result<heddle_arena_stats> stats() const {
    heddle_arena_stats stats = {};
    stats.struct_size = sizeof(stats);
    const heddle_status status = heddle_arena_get_stats(get(), &stats);
    return status == HEDDLE_OK ? Result<heddle_arena_stats>(stats) : Result<heddle_arena_stats>(Status::of(status));
  }
  heddle_arena *get() const { return handle.get(); }

private:
  struct Close {
    void operator()(heddle_arena *arena) const { heddle_arena_close(arena); }
  };
  explicit Arena(heddle_arena *arena) : handle(arena) {}
  std::unique_ptr<heddle_arena, Close> handle;
};

// What this process has done.
inline heddle_stats stats() {
  heddle_stats stats = {};
  stats.struct_size = sizeof(stats);
  const heddle_status status = heddle_stats_get(&stats);
  assert(status == HEDDLE_OK);
  (void)status;
  return stats;
}

// The same as metrics in the text format of OpenMetrics.
inline Result<std::string> statsText() {
  uint64_t bytes = 0;
  std::string text;
  do { // others may count meanwhile
    text.resize(bytes);
    if (const heddle_status status = heddle_stats_text(text.data(), text.size(), &bytes))
      return Status::of(status);
  } while (bytes > text.size());
  text.resize(bytes - 1);
  return text;
}

} // namespace heddle::api

#endif
