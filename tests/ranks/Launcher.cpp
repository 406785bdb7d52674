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
    members[size_t(number)].now = start(number);
  }
}

Team::Process Team::start(int number) const {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    std::abort();
  const pid_t launcher = getpid(), child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher)
      _exit(0);
    for (const Member &other : members)
      for (const Process &process : {other.now, other.next})
        if (process.channel >= 0)
          close(process.channel);
    close(ends[0]);
    liveAsRank({number, ends[1], options.standsStill}, attempts, kernels);
  }
  close(ends[1]);
  const bool isWelcomed = !welcome.empty();
  if (isWelcomed)
    (void)send(ends[0], welcome.data(), welcome.size(), MSG_NOSIGNAL);
  return {child, ends[0], isWelcomed};
}

void Team::lose(int number) {
  Member &member = members[size_t(number)];
  member.isLost = true;
  member.next = start(number);
}

void Team::end(const Process &process) {
  if (process.channel >= 0)
    close(process.channel);
  if (process.id <= 0)
    return;
  kill(process.id, SIGKILL);
  ending.push_back(process.id);
}

void Team::reap(bool isLast) {
  const auto isGone = [&](pid_t id) { return waitpid(id, nullptr, isLast ? 0 : WNOHANG) != 0; };
  ending.erase(std::remove_if(ending.begin(), ending.end(), isGone), ending.end());
}

Reply Team::replaceLost() {
  std::vector<int> welcomed;
  for (size_t number = 0; number < members.size(); ++number) {
    Member &member = members[number];
    if (!member.isLost)
      continue;
    end(member.now);
    member = {member.next, {}};
    if (member.now.owesAnswer)
      welcomed.push_back(int(number));
    member.now.owesAnswer = false;
  }
  reap(/*isLast=*/false);
  Reply last;
  for (const Reply &reply : await(welcomed))
    if (last = reply; !reply.isOk())
      return reply;
  return last;
}

Team::~Team() {
  for (const Member &member : members) {
    end(member.next);
    if (member.isLost || options.standsStill) {
      end(member.now);
      continue;
    }
    close(member.now.channel); // one that lives ends by itself
    if (member.now.id > 0)
      ending.push_back(member.now.id);
  }
  reap(/*isLast=*/true);
}

std::vector<int> Team::firstOf(int ranks) {
  std::vector<int> numbers;
  for (int number = 0; number < ranks; ++number)
    numbers.push_back(number);
  return numbers;
}

// Whether it has answered, died or stopped.
bool Team::settle(int number, Reply &reply) {
  static char text[4096];
  Member &member = members[size_t(number)];
  const ssize_t bytes = recv(member.now.channel, text, sizeof text, MSG_DONTWAIT);
  if (bytes > 0) {
    reply = parsed(std::string(text, size_t(bytes)));
    return true;
  }
  int state = 0;
  if (waitpid(member.now.id, &state, WNOHANG | WUNTRACED) != member.now.id)
    return false;
  member.isStopped = WIFSTOPPED(state);
  reply.end = member.isStopped ? Reply::End::stopped : Reply::End::died;
  reply.words = member.isStopped     ? "stopped"
                : WIFSIGNALED(state) ? "ended by signal " + std::to_string(WTERMSIG(state))
                                     : "ended with " + std::to_string(WEXITSTATUS(state));
  if (!member.isStopped)
    member.now.id = 0;
  lose(number);
  return true;
}

std::vector<Reply> Team::order(const std::vector<int> &to, const std::vector<std::string> &orders) {
  for (size_t i = 0; i < to.size(); ++i)
    (void)send(members[size_t(to[i])].now.channel, orders[i].data(), orders[i].size(), MSG_NOSIGNAL);
  return await(to);
}

std::vector<Reply> Team::await(const std::vector<int> &of) {
  std::vector<Reply> replies(of.size());
  std::vector<int> pending = of;
  const auto end = Clock::now() + std::chrono::duration<double>(options.patienceSeconds);
  while (!pending.empty()) {
    std::vector<pollfd> channels;
    for (int number : pending)
      channels.push_back({members[size_t(number)].now.channel, POLLIN, 0});
    poll(channels.data(), channels.size(), 1);
    const bool isOver = Clock::now() > end;
    for (size_t i = 0; i < of.size(); ++i) {
      const auto place = std::find(pending.begin(), pending.end(), of[i]);
      if (place == pending.end())
        continue;
      const bool isSettled = settle(of[i], replies[i]);
      if (!isSettled && isOver) {
        replies[i].end = Reply::End::hung, replies[i].words = "no answer";
        lose(of[i]);
      }
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
