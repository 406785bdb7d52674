//===- Rank.cpp - orders and answers ---------------------------------------------------===//
#include "Rank.h"
#include "Board.h"
#include "Clock.h"
#include "Points.h"
#include "Version.h"

#include "runtime/Api/GroupHandles.h"

#include <cstring>
#include <future>
#include <iterator>
#include <optional>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace heddle::ranks {
namespace {

std::string hexOf(const std::string &bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string bytesOfHex(const std::string &text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += char(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

struct Answer {
  Status status;
  bool isIntact = true;
  std::string words = {};
};

// Tensors of one call on the GPU.
class CallMemory {
public:
  CallMemory(const Scene &scene, const Device &device, Bytes host, int64_t rows)
      : scene(scene), device(device), host(std::move(host)), rows(rows) {}
  ~CallMemory() {
    for (uint8_t *field : host)
      delete[] field;
  }

  Status upload(cuda::Stream stream) {
    for (size_t i = 0; i < kFields.size(); ++i) {
      const int64_t bytes = int64_t(scene.bytesOf(kFields[i], rows));
      HEDDLE_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, std::max<int64_t>(bytes, 1)));
      HEDDLE_TRY(kFields[i].isResult ? buffer.fillBytes(0xff, stream) : buffer.copyFrom(host[i], bytes, 0, stream));
      buffers.push_back(std::move(buffer));
    }
    return device.synchronize(stream);
  }
  Result<bool> isIntact(cuda::Stream stream) const {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (kFields[i].isResult)
        continue;
      std::vector<uint8_t> now(scene.bytesOf(kFields[i], rows));
      HEDDLE_TRY(buffers[i].copyTo(now.data(), int64_t(now.size()), 0, stream));
      HEDDLE_TRY(device.synchronize(stream));
      if (std::memcmp(now.data(), host[i], now.size()) != 0)
        return false;
    }
    return true;
  }
  Status download(cuda::Stream stream) {
    for (size_t i = 0; i < buffers.size(); ++i)
      if (kFields[i].isResult)
        HEDDLE_TRY(buffers[i].copyTo(host[i], int64_t(scene.bytesOf(kFields[i], rows)), 0, stream));
    return device.synchronize(stream);
  }
  Status clear(size_t number, cuda::Stream stream) { return buffers[number].fillBytes(0, stream); }
  std::vector<void *> addresses() const {
    std::vector<void *> all;
    for (const DeviceBuffer &buffer : buffers)
      all.push_back(buffer.data());
    return all;
  }
  uint8_t *field(size_t number) { return host[number]; }

private:
  const Scene &scene;
  const Device &device;
  Bytes host;
  const int64_t rows;
  std::vector<DeviceBuffer> buffers;
};

class Rank {
public:
  Rank(const RankOptions &options, const std::vector<Attempt> &attempts, Kernels &kernels)
      : options(options), attempts(attempts), kernels(kernels) {}

  Status open() {
    HEDDLE_TRY(watchCalls(options.number));
    HEDDLE_TRY(said(heddle_device_open(options.number, &device)));
    HEDDLE_ASSIGN(DeviceStream made, DeviceStream::create(device->device));
    stream.emplace(std::move(made));
    return kernels.open(device);
  }

  Answer serve(const std::string &order);

private:
  Result<std::string> makeId();
  Status join(std::istringstream &words);
  Status joinAlone();
  void leave() {
    point();
    heddle_group_close(group);
    group = nullptr;
  }
  Request requestOf(const Attempt &attempt, int rank) const;
  Status findKernels(const std::vector<size_t> &numbers);
  Answer call(const Attempt &attempt);
  Answer callAlone(const Attempt &attempt);
  Status launch(const Request &request, bool isBackward, const heddle_attention_args &args);
  Status launchAlone(const Scene &scene, bool isBackward, heddle_attention_args args);
  Result<std::vector<const heddle_kernel *>> kernelsFor(const Request &request, bool isBackward);

  const RankOptions &options;
  const std::vector<Attempt> &attempts;
  Kernels &kernels;
  heddle_device *device = nullptr;
  heddle_group *group = nullptr;
  int rank = 0; // in the group
  std::optional<DeviceStream> stream;
};

Result<std::string> Rank::makeId() {
  std::string id(HEDDLE_GROUP_ID_BYTES, '\0');
  HEDDLE_TRY(said(heddle_group_make_id(id.data())));
  return hexOf(id);
}

Status Rank::join(std::istringstream &words) {
  int ranks = 0;
  double limitSeconds = 0;
  std::string id;
  words >> rank >> ranks >> limitSeconds >> id;
  const std::string bytes = bytesOfHex(id);
  point();
  return said(heddle_group_open(device, bytes.data(), rank, ranks, limitSeconds, &group));
}

// What NCCL does once in a process is done.
Status Rank::joinAlone() {
  HEDDLE_ASSIGN(const std::string id, makeId());
  std::istringstream words("0 1 0 " + id);
  HEDDLE_TRY(join(words));
  leave();
  return {};
}

Request Rank::requestOf(const Attempt &attempt, int rank) const {
  Request request;
  request.scene = attempt.scene;
  request.plan = attempt.plan;
  request.isBackward = attempt.isBackward;
  request.operands = attempt.scene->operands;
  if (attempt.change)
    attempt.change(request, rank);
  return request;
}

Result<std::vector<const heddle_kernel *>> Rank::kernelsFor(const Request &request, bool isBackward) {
  std::vector<const heddle_kernel *> all;
  const Scene &scene = request.kernelsOf ? *request.kernelsOf : *request.scene;
  for (const std::string &kind : kindsOf(scene.spec, isBackward, /*isOfPart=*/true)) {
    HEDDLE_ASSIGN(const heddle_kernel *kernel, kernels.find(scene, true, kind));
    all.push_back(kernel);
  }
  return all;
}

// So that calls find them in this process, and other ranks in the database. Those that are compiled, side by side.
Status Rank::findKernels(const std::vector<size_t> &numbers) {
  std::vector<std::function<Status()>> searches;
  for (size_t number : numbers) {
    const Attempt &attempt = attempts.at(number);
    if (attempt.change)
      searches.push_back([this, &attempt] {
        const Request request = requestOf(attempt, /*rank=*/1);
        return kernelsFor(request, request.isBackward).status();
      });
    for (bool isOfPart : {false, true})
      for (bool isBackward : {false, true})
        for (const std::string &kind : kindsOf(attempt.scene->spec, isBackward, isOfPart))
          if (!attempt.change)
            searches.push_back(
                [this, &attempt, isOfPart, kind] { return kernels.find(*attempt.scene, isOfPart, kind).status(); });
  }
  std::vector<std::future<Status>> found;
  for (const auto &search : searches)
    found.push_back(std::async(kernels.areCompiled() ? std::launch::async : std::launch::deferred, search));
  Status first;
  for (std::future<Status> &each : found)
    if (const Status status = each.get(); first.isOk())
      first = status;
  return first;
}

Status Rank::launch(const Request &request, bool isBackward, const heddle_attention_args &given) {
  heddle_attention_args args = given;
  args.scale = request.scale;
  args.operands = request.operands.data(), args.operand_count = request.operands.size();
  if (!request.hasDLse)
    args.d_lse = nullptr;
  const std::string kind = callKindOf(request.scene->spec, isBackward);
  HEDDLE_ASSIGN(const auto launched, kernelsFor(request, isBackward));
  const auto count = int32_t(launched.size());
  uint64_t bytes = 0; // a call that is refused says so to all ranks
  (void)heddle_group_workspace(group, request.plan, launched.data(), count, kind.c_str(), &args, &bytes);
  HEDDLE_ASSIGN(DeviceBuffer workspace, DeviceBuffer::allocate(device->device, std::max<int64_t>(int64_t(bytes), 1)));
  args.workspace = bytes ? workspace.data() : nullptr, args.workspace_bytes = bytes;
  point();
  HEDDLE_TRY(
      said(heddle_group_launch(group, request.plan, launched.data(), count, kind.c_str(), stream->handle(), &args)));
  point();
  HEDDLE_TRY(said(heddle_group_wait(group, stream->handle())));
  return device->device.synchronize(stream->handle());
}

Answer Rank::call(const Attempt &attempt) {
  const Request request = requestOf(attempt, rank);
  Scene &scene = const_cast<Scene &>(*request.scene);
  setVersion(request.version);
  const int64_t rows = scene.rowsOf(*request.plan, std::min(rank, request.plan->plan->ranks() - 1));
  const bool isOwn = rank < request.plan->plan->ranks();
  Bytes share = scene.share(rows);
  for (size_t i = 0; i < kFields.size(); ++i)
    if (!kFields[i].isResult && isOwn)
      scene.moveRows(*request.plan, rank, i, scene.tensors[i], share[i], /*isToWhole=*/false);
  CallMemory memory(scene, device->device, share, rows);
  Status status = memory.upload(stream->handle());
  for (bool isBackward : {false, true})
    if (status.isOk() && (isBackward ? request.isBackward : request.isForward))
      status = launch(request, isBackward, scene.arguments(memory.addresses(), rows, isBackward));
  setVersion(nullptr);
  auto isIntact = memory.isIntact(stream->handle());
  if (!isIntact)
    return {isIntact.status(), false};
  if (status.isOk())
    status = memory.download(stream->handle());
  for (size_t i = 0; i < kFields.size(); ++i)
    if (status.isOk() && kFields[i].isResult && isOwn)
      scene.moveRows(*request.plan, rank, i, scene.tensors[i], memory.field(i), /*isToWhole=*/true);
  return {status, *isIntact};
}

Status Rank::launchAlone(const Scene &scene, bool isBackward, heddle_attention_args args) {
  HEDDLE_ASSIGN(const heddle_kernel *kernel, kernels.find(scene, false, kindsOf(scene.spec, isBackward, false)[0]));
  uint64_t bytes = 0;
  HEDDLE_TRY(said(heddle_kernel_workspace(kernel, &args, &bytes)));
  HEDDLE_ASSIGN(DeviceBuffer workspace, DeviceBuffer::allocate(device->device, std::max<int64_t>(int64_t(bytes), 1)));
  args.workspace = bytes ? workspace.data() : nullptr, args.workspace_bytes = bytes;
  HEDDLE_TRY(said(heddle_kernel_launch(kernel, stream->handle(), &args)));
  return device->device.synchronize(stream->handle());
}

// The whole by one launch of each kind.
Answer Rank::callAlone(const Attempt &attempt) {
  Scene &scene = *attempt.scene;
  Bytes whole = scene.share(scene.spec.rows);
  for (size_t i = 0; i < kFields.size(); ++i)
    std::memcpy(whole[i], scene.tensors[i], scene.bytesOf(kFields[i], scene.spec.rows));
  CallMemory memory(scene, device->device, whole, scene.spec.rows);
  auto run = [&]() -> Status {
    HEDDLE_TRY(memory.upload(stream->handle()));
    const std::vector<void *> addresses = memory.addresses();
    HEDDLE_TRY(launchAlone(scene, false, scene.arguments(addresses, scene.spec.rows, false)));
    for (size_t i = 0; i < kFields.size(); ++i) // gradients are added up
      if (kFields[i].role == Role::dQ || kFields[i].role == Role::dK || kFields[i].role == Role::dV)
        HEDDLE_TRY(memory.clear(i, stream->handle()));
    HEDDLE_TRY(launchAlone(scene, true, scene.arguments(addresses, scene.spec.rows, true)));
    return memory.download(stream->handle());
  };
  const Status status = run();
  for (size_t i = 0; i < kFields.size(); ++i)
    if (status.isOk() && kFields[i].isResult)
      std::memcpy(scene.expected[i], memory.field(i), scene.bytesOf(kFields[i], scene.spec.rows));
  return {status};
}

Answer Rank::serve(const std::string &order) {
  std::istringstream words(order);
  std::string verb;
  words >> verb;
  if (verb == "id") {
    auto id = makeId();
    return id ? Answer{{}, true, *id} : Answer{id.status()};
  }
  if (verb == "die") {
    int64_t last = 0;
    int signal = 0;
    words >> last >> signal;
    dieAt(last, signal);
    return {};
  }
  if (verb == "ready")
    return {};
  if (verb == "kernels" || verb == "warm") {
    const std::vector<size_t> numbers{std::istream_iterator<size_t>(words), {}};
    const Status found = findKernels(numbers);
    return {found.isOk() && verb == "warm" ? joinAlone() : found};
  }
  size_t number = 0;
  words >> number;
  if (verb == "leave")
    return leave(), Answer{};
  if (verb == "alone")
    return callAlone(attempts.at(number));
  if (verb == "join")
    return {join(words)};
  if (verb == "call")
    return call(attempts.at(number));
  Answer answer{join(words)}; // "try"
  if (answer.status.isOk())
    answer = call(attempts.at(number));
  leave();
  return answer;
}

} // namespace

void liveAsRank(const RankOptions &options, const std::vector<Attempt> &attempts, Kernels &kernels) {
  if (options.standsStill)
    standStill();
  Rank rank(options, attempts, kernels);
  const Status opened = rank.open();
  static char order[4096];
  for (;;) {
    const ssize_t bytes = recv(options.channel, order, sizeof order, 0);
    if (bytes <= 0)
      _exit(0);
    const Answer answer = opened.isOk() ? rank.serve(std::string(order, size_t(bytes))) : Answer{opened};
    const std::string text = std::to_string(int(answer.status.code())) + (answer.isIntact ? " intact " : " changed ") +
                             (answer.status.isOk() ? answer.words : answer.status.message());
    if (send(options.channel, text.data(), std::min<size_t>(text.size(), 4000), MSG_NOSIGNAL) < 0)
      _exit(0);
  }
}

} // namespace heddle::ranks
