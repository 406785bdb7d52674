// Kernels through libheddle's C interface, with the recording driver and NVRTC: compiled once, filed, found again,
// replaced by better ones.
#include "library_session.h"
#include "without_threads.h"

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <dlfcn.h>
#include <filesystem>
#include <mutex>
#include <thread>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace heddle::test;

namespace {

// What holds a thread until somebody opens it.
class Gate {
public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex);
    isOpen = true;
    changed.notify_all();
  }
  void pass() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return isOpen; });
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool isOpen = false;
};

std::atomic<Gate *> opensAtJoin{nullptr}; // by who waits for a thread to end

// What a task said at its end, which holds the thread of the background if there is a gate.
struct Ending {
  std::atomic<int> times{0};
  heddle_status status = HEDDLE_INTERNAL;
  std::string message, contentKey;
  Gate *gate = nullptr;
  static void done(void *user, heddle_status status, const char *message, heddle_kernel *kernel) {
    Ending &ending = *static_cast<Ending *>(user);
    ending.status = status;
    ending.message = message;
    if (KernelHandle owned{kernel})
      ending.contentKey = infoOf(owned.get()).content_key;
    ++ending.times;
    if (ending.gate)
      ending.gate->pass();
  }
};

} // namespace

extern "C" int pthread_join(pthread_t thread, void **result) {
  static auto *real = reinterpret_cast<int (*)(pthread_t, void **)>(dlsym(RTLD_NEXT, "pthread_join"));
  if (Gate *gate = opensAtJoin.exchange(nullptr))
    gate->open();
  return real(thread, result);
}

TEST_CASE("[8] a kernel is compiled once, filed, and found by the next process") {
  if (!start())
    return;
  Session session;
  KernelHandle none;
  CHECK_REFUSED(session.find(HEDDLE_ONLY_STORED, none), HEDDLE_NOT_FOUND, "compile or tune the pattern");
  const int before = counting_nvrtc_compilations();
  std::vector<std::string> keys(8);
  std::vector<std::thread> threads;
  for (std::string &key : keys)
    threads.emplace_back([&] { key = infoOf(session.found(0).get()).content_key; });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(counting_nvrtc_compilations() == before + 1);
  for (const std::string &key : keys)
    CHECK(key == keys[0]);
  heddle_problem longer = smallProblem();
  longer.seqlen_q = longer.seqlen_k = 100000;
  heddle_operand left = {0, HEDDLE_OPERAND_INT, {}};
  left.value.i64 = 4000;
  longer.operands = &left;
  longer.operand_count = 1;
  CHECK(infoOf(session.found(0, longer).get()).content_key == keys[0]);
  CHECK(infoOf(session.found(HEDDLE_ONLY_STORED).get()).match == HEDDLE_MATCH_UNTUNED_DEFAULT);
  CompilerHandle next = openCompiler(session.database, HEDDLE_COMPILER_READ_ONLY);
  std::swap(session.compiler, next);
  CHECK(infoOf(session.found(0).get()).content_key == keys[0]);
  CHECK(counting_nvrtc_compilations() == before + 1);
}

TEST_CASE("[8] a question with sizes that another process asks again compiles nothing") {
  if (!start())
    return;
  Session session;
  heddle_problem few = smallProblem(), many = smallProblem(); // of which defaults differ
  few.seqlen_q = 64;
  const KernelHandle ofFew = session.found(0, few), ofMany = session.found(0, many);
  const int before = counting_nvrtc_compilations();
  const pid_t child = fork();
  if (child == 0) {
    session.compiler = openCompiler(session.database);
    for (const heddle_problem &problem : {few, many})
      const KernelHandle first = session.found(0, problem), again = session.found(0, problem),
                         soon = session.found(HEDDLE_FIRST_SOON, problem);
    _exit(counting_nvrtc_compilations() - before);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("[10] the first kernel is there soon, a better one later") {
  if (!start())
    return;
  Session session;
  KernelHandle first = session.found(HEDDLE_FIRST_SOON);
  const std::string note = infoOf(first.get()).note, config = infoOf(first.get()).config;
  CHECK_MESSAGE(note.find("provisional") != std::string::npos, note);
  CHECK(config.find("portable") != std::string::npos);
  KernelHandle best = session.found(0);
  CHECK(std::string(infoOf(best.get()).note).find("provisional") == std::string::npos);
  CHECK(std::string(infoOf(best.get()).config).find("portable") == std::string::npos);
  CHECK(infoOf(session.found(HEDDLE_FIRST_SOON).get()).content_key == std::string(infoOf(best.get()).content_key));
  CHECK(infoOf(session.found(HEDDLE_ONLY_STORED).get()).content_key == std::string(infoOf(best.get()).content_key));
  CHECK(infoOf(first.get()).config == config); // still there
}

TEST_CASE("keys that begin inside a block get a kernel of their own, which is no default") {
  if (!start())
    return;
  Session session;
  session.pattern =
      parse("attn.pattern @p() { %w = attn.window [1, 1] %m = attn.blocks %w by [128] attn.softmax union(%m) }");
  auto keyAt = [&](int64_t origin, uint32_t flags) {
    heddle_problem problem = smallProblem();
    problem.k_origin = origin;
    return std::string(infoOf(session.found(flags, problem).get()).content_key);
  };
  const int before = counting_nvrtc_compilations();
  const std::string whole = keyAt(0, 0), any = keyAt(20, 0);
  CHECK(any != whole);
  CHECK(keyAt(-77, 0) == any);
  CHECK(keyAt(401, HEDDLE_FIRST_SOON) == any);
  CHECK(keyAt(1024, 0) == whole);
  CHECK(keyAt(20, HEDDLE_ONLY_STORED) == whole);
  CHECK(counting_nvrtc_compilations() == before + 2);
}

TEST_CASE("a compiler for reading only makes no file and serves what it compiled") {
  if (!start())
    return;
  Session session(HEDDLE_COMPILER_READ_ONLY);
  const int before = counting_nvrtc_compilations();
  const std::string key = infoOf(session.found(0).get()).content_key;
  CHECK(infoOf(session.found(0).get()).content_key == key);
  CHECK(counting_nvrtc_compilations() == before + 1);
  CHECK(!std::filesystem::exists(session.database));
  heddle_task *task = nullptr;
  const heddle_problem problem = smallProblem();
  CHECK_REFUSED(heddle_compiler_tune(session.compiler.get(), session.device.get(), session.pattern.get(), &problem,
                                     nullptr, nullptr, nullptr, &task),
                HEDDLE_DENIED, "reading only");
}

TEST_CASE("a kernel that cannot be filed serves, and says so") {
  if (!start())
    return;
  Session session;
  rlimit before = {};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none = {0, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &none); // as a full disk
  KernelHandle kernel = session.found(0);
  setrlimit(RLIMIT_FSIZE, &before);
  const std::string note = infoOf(kernel.get()).note;
  CHECK_MESSAGE(note.find("not filed: ") != std::string::npos, note);
  CHECK(infoOf(session.found(0).get()).content_key == std::string(infoOf(kernel.get()).content_key));
}

TEST_CASE("[13] a database that is taken away or damaged while it is open takes no kernel away") {
  if (!start())
    return;
  for (bool isDeleted : {true, false}) {
    Session session;
    const std::string key = infoOf(session.found(0).get()).content_key;
    if (isDeleted)
      std::filesystem::remove(session.database);
    else
      std::filesystem::resize_file(session.database, 100);
    CHECK(infoOf(session.found(0).get()).content_key == key);
    heddle_problem other = smallProblem();
    other.dtype = HEDDLE_FP16;
    KernelHandle compiled = session.found(0, other); // where nothing can be filed any more
    CHECK(infoOf(compiled.get()).content_key != key);
    CHECK(infoOf(session.found(0, other).get()).content_key == std::string(infoOf(compiled.get()).content_key));
  }
}

TEST_CASE("work in the background ends once, with a kernel or a reason") {
  if (!start())
    return;
  Session session;
  const heddle_problem problem = smallProblem();
  Ending compiled, cancelled, refused, compiledLate, closed;
  Gate isCancelled, isClosing;
  compiled.gate = &isCancelled, compiledLate.gate = &isClosing;
  auto begin = [&](Ending &ending, const heddle_problem &wanted) {
    heddle_task *task = nullptr;
    CHECK_OK(heddle_compiler_compile(session.compiler.get(), session.device.get(), session.pattern.get(), &wanted,
                                     Ending::done, &ending, &task));
    return TaskHandle(task);
  };
  heddle_problem huge = problem;
  huge.head_dim = 4096;
  TaskHandle first = begin(compiled, problem), second = begin(cancelled, problem), third = begin(refused, huge);
  heddle_task_cancel(second.get());
  isCancelled.open();
  int32_t isDone = 0;
  CHECK_OK(heddle_task_wait(first.get(), -1, &isDone));
  CHECK(isDone == 1);
  for (const double seconds : {HUGE_VAL, 1e300, 0.0, -HUGE_VAL})
    CHECK_OK(heddle_task_wait(first.get(), seconds, &isDone));
  CHECK_REFUSED(heddle_task_wait(first.get(), NAN, &isDone), HEDDLE_INVALID_ARGUMENT,
                "wait: seconds: expected a number");
  CHECK(compiled.times == 1);
  CHECK(compiled.contentKey == infoOf(session.found(HEDDLE_ONLY_STORED).get()).content_key);
  CHECK_REFUSED(heddle_task_wait(second.get(), -1, &isDone), HEDDLE_UNAVAILABLE, "cancelled");
  CHECK(cancelled.times == 1);
  CHECK(heddle_task_wait(third.get(), -1, &isDone) == HEDDLE_UNSUPPORTED);
  CHECK(refused.status == HEDDLE_UNSUPPORTED);
  CHECK(refused.message.find("4096") != std::string::npos);

  heddle_problem other = problem;
  other.dtype = HEDDLE_FP16;
  TaskHandle running = begin(compiledLate, other), waiting = begin(closed, other);
  opensAtJoin = &isClosing;
  session.compiler.reset();
  CHECK(opensAtJoin == nullptr);
  CHECK(compiledLate.times == 1);
  CHECK(closed.times == 1);
  CHECK(closed.status == HEDDLE_UNAVAILABLE);
  CHECK(heddle_task_wait(waiting.get(), 0, &isDone) == HEDDLE_UNAVAILABLE);
  CHECK(isDone == 1);
}

TEST_CASE(
    "[2] without a thread for the background the first kernel serves, and work there is refused with the reason") {
  if (!start())
    return;
  const heddle_problem problem = smallProblem();
  Session(HEDDLE_COMPILER_READ_ONLY).found(0, problem); // loads NVRTC, which the child may not read
  const auto outcome = withoutThreads([&] {
    Session session(HEDDLE_COMPILER_READ_ONLY);
    heddle_task *task = nullptr;
    KernelHandle first;
    const bool isServed = session.find(HEDDLE_FIRST_SOON, first, problem) == HEDDLE_OK;
    const auto status = heddle_compiler_compile(session.compiler.get(), session.device.get(), session.pattern.get(),
                                                &problem, nullptr, nullptr, &task);
    return isServed && status == HEDDLE_INTERNAL &&
           std::string(heddle_last_message()).find("temporarily unavailable") != std::string::npos;
  });
  if (outcome == Outcome::skipped)
    MESSAGE("skipped: this process may not limit its threads");
  CHECK(outcome != Outcome::bad);
}

TEST_CASE("a child of fork closes what it inherited, and its parent's work goes on") {
  if (!start())
    return;
  Session session;
  heddle_problem problem = smallProblem();
  Ending ended;
  heddle_task *task = nullptr;
  CHECK_OK(heddle_compiler_compile(session.compiler.get(), session.device.get(), session.pattern.get(), &problem,
                                   Ending::done, &ended, &task));
  TaskHandle running(task);
  const pid_t child = fork();
  if (child == 0) {
    alarm(300); // where it hangs
    heddle_task *other = nullptr;
    const auto status = heddle_compiler_compile(session.compiler.get(), session.device.get(), session.pattern.get(),
                                                &problem, nullptr, nullptr, &other);
    const bool isRefused =
        status == HEDDLE_INTERNAL && std::string(heddle_last_message()).find("after fork") != std::string::npos;
    session.compiler.reset();
    _exit(isRefused ? 0 : 1);
  }
  int status = 0, isDone = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_OK(heddle_task_wait(running.get(), -1, &isDone));
  CHECK(ended.times == 1);
  CHECK(infoOf(session.found(HEDDLE_ONLY_STORED).get()).content_key == ended.contentKey);
}

TEST_CASE("a search without a right kernel ends with the reason, and its time") {
  if (!start())
    return;
  Session session; // whose GPU computes nothing
  const heddle_problem problem = smallProblem();
  auto options = sized<heddle_tune_options>();
  options.budget_seconds = 3;
  options.verified_rows = 4;
  Ending ending;
  heddle_task *task = nullptr;
  CHECK_OK(heddle_compiler_tune(session.compiler.get(), session.device.get(), session.pattern.get(), &problem, &options,
                                Ending::done, &ending, &task));
  TaskHandle owned(task);
  int32_t isDone = 0;
  CHECK_REFUSED(heddle_task_wait(task, -1, &isDone), HEDDLE_UNAVAILABLE, "no configuration gave a correct");
  CHECK(isDone == 1);
  CHECK(ending.times == 1);
  // which served meanwhile
  CHECK(infoOf(session.found(HEDDLE_ONLY_STORED).get()).match == HEDDLE_MATCH_UNTUNED_DEFAULT);
}

TEST_CASE("questions that make no sense are refused and named") {
  if (!start())
    return;
  Session session;
  KernelHandle kernel;
  auto refused = [&](heddle_problem problem, uint32_t flags, heddle_status code, const char *words) {
    CHECK_REFUSED(session.find(flags, kernel, problem), code, words);
  };
  heddle_problem problem = smallProblem();
  problem.dtype = HEDDLE_E4M3 + 1;
  refused(problem, 0, HEDDLE_INVALID_ARGUMENT, "dtype: expected bf16 (1), fp16 (2), fp32 (3) or e4m3 (4)");
  problem = smallProblem();
  problem.head_dim = 0;
  refused(problem, 0, HEDDLE_INVALID_ARGUMENT, "head_dim");
  problem = smallProblem();
  problem.kind = "backwards";
  refused(problem, 0, HEDDLE_UNSUPPORTED, "'backwards'");
  problem = smallProblem();
  problem.kv_heads = 3;
  refused(problem, 0, HEDDLE_INVALID_ARGUMENT, "multiple of kv heads");
  problem = smallProblem();
  problem.struct_size = 8;
  refused(problem, 0, HEDDLE_INVALID_ARGUMENT, "struct_size");
  refused(smallProblem(), 3, HEDDLE_UNSUPPORTED, "flags");
  heddle_compiler *compiler = nullptr;
  auto options = sized<heddle_compiler_options>();
  options.flags = 64;
  CHECK_REFUSED(heddle_compiler_open(&options, &compiler), HEDDLE_UNSUPPORTED, "flags");
  options.flags = 0, options.workers = -1;
  CHECK_REFUSED(heddle_compiler_open(&options, &compiler), HEDDLE_INVALID_ARGUMENT, "workers");
  options.workers = 0, options.database = "/no/such/folder/kernels.db";
  CHECK(heddle_compiler_open(&options, &compiler) != HEDDLE_OK);
  CHECK(compiler == nullptr);
  heddle_task *task = nullptr;
  problem = smallProblem();
  problem.seqlen_k = 0;
  CHECK_REFUSED(heddle_compiler_tune(session.compiler.get(), session.device.get(), session.pattern.get(), &problem,
                                     nullptr, nullptr, nullptr, &task),
                HEDDLE_INVALID_ARGUMENT, "must all be given");
  auto tuning = sized<heddle_tune_options>();
  tuning.budget_seconds = -1;
  problem = smallProblem();
  CHECK_REFUSED(heddle_compiler_tune(session.compiler.get(), session.device.get(), session.pattern.get(), &problem,
                                     &tuning, nullptr, nullptr, &task),
                HEDDLE_INVALID_ARGUMENT, "budget_seconds");
}

TEST_CASE("[11] what a newer version asks for is refused") {
  Session session;
  struct {
    heddle_problem problem;
    uint64_t added;
  } newer = {smallProblem(), 0};
  heddle_kernel *kernel = nullptr;
  newer.problem.struct_size = sizeof newer;
  newer.added = 1;
  CHECK_REFUSED(heddle_compiler_kernel(session.compiler.get(), session.device.get(), session.pattern.get(),
                                       &newer.problem, 0, &kernel),
                HEDDLE_UNSUPPORTED, "belongs to a field of a newer version");
  struct {
    heddle_compiler_options options;
    uint64_t added;
  } options = {sized<heddle_compiler_options>(), 1};
  heddle_compiler *compiler = nullptr;
  options.options.struct_size = sizeof options;
  CHECK_REFUSED(heddle_compiler_open(&options.options, &compiler), HEDDLE_UNSUPPORTED,
                "belongs to a field of a newer version");
  options.added = 0, options.options.reserved = 1;
  CHECK_REFUSED(heddle_compiler_open(&options.options, &compiler), HEDDLE_UNSUPPORTED,
                "the reserved field is not zero");
  options.options.struct_size = 12;
  CHECK_REFUSED(heddle_compiler_open(&options.options, &compiler), HEDDLE_INVALID_ARGUMENT,
                "open compiler: struct_size: expected at least");
  CHECK(compiler == nullptr);
}

TEST_CASE("[11] structs of an older version end where they ended") {
  if (!start())
    return;
  Session session;
  const std::string key = infoOf(session.found(0).get()).content_key;
  heddle_problem older = smallProblem();
  older.operand_count = 77; // of a field that the caller's version does not have
  older.struct_size = offsetof(heddle_problem, operands);
  CHECK(infoOf(session.found(HEDDLE_ONLY_STORED, older).get()).content_key == key);
  auto options = sized<heddle_compiler_options>();
  const std::string database = session.database;
  options.database = database.c_str();
  options.flags = HEDDLE_COMPILER_READ_ONLY;
  options.workers = -1;
  options.struct_size = offsetof(heddle_compiler_options, workers);
  heddle_compiler *compiler = nullptr;
  CHECK_OK(heddle_compiler_open(&options, &compiler));
  heddle_compiler_close(compiler);
}

TEST_CASE("[12] handles that were closed are refused") {
  Session session;
  heddle_kernel *kernel = nullptr;
  heddle_task *task = nullptr;
  int32_t isDone = 0;
  const heddle_problem problem = smallProblem();
  heddle_device *device = session.device.release();
  heddle_device_close(device);
  CHECK_REFUSED(heddle_compiler_kernel(session.compiler.get(), device, session.pattern.get(), &problem, 0, &kernel),
                HEDDLE_INVALID_ARGUMENT, "kernel for a problem: device: this handle was closed");
  CHECK_OK(heddle_device_open(0, &device));
  session.device.reset(device);
  CHECK_OK(heddle_compiler_compile(session.compiler.get(), device, session.pattern.get(), &problem, nullptr, nullptr,
                                   &task));
  CHECK_OK(heddle_task_wait(task, -1, &isDone));
  heddle_task_close(task);
  heddle_task_close(task);
  heddle_task_cancel(task);
  CHECK_REFUSED(heddle_task_wait(task, 0, &isDone), HEDDLE_INVALID_ARGUMENT, "wait: task: this handle was closed");
  heddle_compiler *compiler = session.compiler.release();
  heddle_compiler_close(compiler);
  heddle_compiler_close(compiler);
  CHECK_REFUSED(heddle_compiler_kernel(compiler, device, session.pattern.get(), &problem, 0, &kernel),
                HEDDLE_INVALID_ARGUMENT, "kernel for a problem: compiler: this handle was closed");
  CHECK_REFUSED(heddle_compiler_compile(compiler, device, session.pattern.get(), &problem, nullptr, nullptr, &task),
                HEDDLE_INVALID_ARGUMENT, "compile: compiler: this handle was closed");
  CHECK(kernel == nullptr);
}
