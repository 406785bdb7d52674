//===- Launcher.cpp - forks, sockets and rounds ------------------------------------------------===//
#include "Launcher.h"
#include "Board.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <set>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::ranks {
namespace {

using Clock = std::chrono::steady_clock;

Reply parsed(const std::string &text) {
  Reply reply;
  const size_t word = text.find(' '), words = text.find(' ', word + 1);
  reply.words = text.substr(words + 1);
  reply.isIntact = text.compare(word + 1, 6, "intact") == 0;
  if (const auto code = StatusCode(std::atoi(text.c_str())); code != StatusCode::ok)
    reply.status = Status(code, reply.words);
  return reply;
}

} // namespace

Team::Team(int ranks, const std::vector<Attempt> &attempts, Kernels &kernels, const TeamOptions &options)
    : options(options), attempts(attempts), kernels(kernels), members(size_t(ranks)) {
  for (int number = 0; number < ranks; ++number) {
    RankNumbers &numbers = board().ranks[number];
    numbers.points = numbers.polls = numbers.sends = 0;
    start(number);
  }
}

void Team::start(int number) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    std::abort();
  const pid_t launcher = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
      _exit(0);
    for (const Member &other : members)
      if (other.channel >= 0)
        close(other.channel);
    close(ends[0]);
    liveAsRank({number, ends[1], options.standsStill}, attempts, kernels);
  }
  close(ends[1]);
  members[size_t(number)] = {child, ends[0]};
}

void Team::replaceLost() {
  for (size_t number = 0; number < members.size(); ++number) {
    Member &member = members[number];
    if (!member.isLost)
      continue;
    close(member.channel);
    member.channel = -1;
    if (member.process > 0) {
      kill(member.process, SIGKILL);
      waitpid(member.process, nullptr, 0);
    }
    start(int(number));
  }
}

Team::~Team() {
  for (const Member &member : members) {
    close(member.channel); // one that lives ends by itself
    if (member.process > 0 && (member.isStopped || options.standsStill))
      kill(member.process, SIGKILL);
  }
  for (const Member &member : members)
    if (member.process > 0)
      waitpid(member.process, nullptr, 0);
}

std::vector<int> Team::firstOf(int ranks) {
  std::vector<int> numbers;
  for (int number = 0; number < ranks; ++number)
    numbers.push_back(number);
  return numbers;
}

// Whether it has answered, died or stopped.
bool Team::settle(Member &member, Reply &reply) {
  static char text[4096];
  const ssize_t bytes = recv(member.channel, text, sizeof text, MSG_DONTWAIT);
  if (bytes > 0) {
    reply = parsed(std::string(text, size_t(bytes)));
    return true;
  }
  int state = 0;
  if (waitpid(member.process, &state, WNOHANG | WUNTRACED) != member.process)
    return false;
  member.isStopped = WIFSTOPPED(state);
  member.isLost = true;
  reply.end = member.isStopped ? Reply::End::stopped : Reply::End::died;
  reply.words = member.isStopped     ? "stopped"
                : WIFSIGNALED(state) ? "ended by signal " + std::to_string(WTERMSIG(state))
                                     : "ended with " + std::to_string(WEXITSTATUS(state));
  if (!member.isStopped)
    member.process = 0;
  return true;
}

std::vector<Reply> Team::order(const std::vector<int> &to, const std::vector<std::string> &orders) {
  std::vector<Reply> replies(to.size());
  std::vector<int> pending;
  for (size_t i = 0; i < to.size(); ++i) {
    Member &member = members[size_t(to[i])];
    (void)send(member.channel, orders[i].data(), orders[i].size(), MSG_NOSIGNAL);
    pending.push_back(to[i]);
  }
  const auto end = Clock::now() + std::chrono::duration<double>(options.patienceSeconds);
  while (!pending.empty()) {
    std::vector<pollfd> channels;
    for (int number : pending)
      channels.push_back({members[size_t(number)].channel, POLLIN, 0});
    poll(channels.data(), channels.size(), 1);
    const bool isOver = Clock::now() > end;
    for (size_t i = 0; i < to.size(); ++i) {
      const auto place = std::find(pending.begin(), pending.end(), to[i]);
      if (place == pending.end())
        continue;
      const bool isSettled = settle(members[size_t(to[i])], replies[i]);
      if (!isSettled && isOver)
        replies[i].end = Reply::End::hung, replies[i].words = "no answer", members[size_t(to[i])].isLost = true,
        kill(members[size_t(to[i])].process, SIGKILL);
      if (isSettled || isOver)
        pending.erase(place);
    }
    if (options.standsStill)
      standstill.look(pending);
  }
  return replies;
}

Reply Team::spread(const std::string &verb, const std::vector<size_t> &numbers) {
  Reply last;
  for (size_t first = 0; first < numbers.size(); first += members.size()) {
    const std::vector<int> some = firstOf(int(std::min(members.size(), numbers.size() - first)));
    std::vector<std::string> orders;
    for (size_t i = 0; i < some.size(); ++i)
      orders.push_back(verb + " " + std::to_string(numbers[first + i]));
    for (const Reply &reply : order(some, orders))
      if (last = reply; !reply.isOk())
        return reply;
  }
  return last;
}

Reply Team::makeKernels(size_t count) {
  std::vector<std::string> orders(members.size(), "kernels");
  std::set<std::string> known;
  size_t next = 0;
  for (size_t number = 0; number < count; ++number)
    if (attempts[number].change || known.insert(kernelsOf(attempts[number].scene->spec)).second)
      orders[next++ % members.size()] += " " + std::to_string(number);
  for (const Reply &reply : order(firstOf(int(members.size())), orders))
    if (!reply.isOk())
      return reply;
  return {};
}

std::vector<Reply> Team::meet(const std::vector<int> &ranks, const std::string &verb, size_t attempt,
                              const std::function<void()> &before) {
  for (const Reply &ready : order(ranks, std::vector<std::string>(ranks.size(), "ready"))) // their GPUs are open
    if (!ready.isOk())
      return std::vector<Reply>(ranks.size(), ready);
  const Reply id = order(ranks[0], "id");
  if (!id.isOk())
    return std::vector<Reply>(ranks.size(), id);
  if (before)
    before();
  std::vector<std::string> orders;
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    orders.push_back(verb + " " + std::to_string(attempt) + " " + std::to_string(rank) + " " +
                     std::to_string(ranks.size()) + " " + std::to_string(options.limitSeconds) + " " + id.words);
  return order(ranks, orders);
}

} // namespace heddle::ranks
