//===- Launcher.h - the ranks of a test, and their time -------------------------------------===//
// Owns the processes of a group: starts them, gives orders, waits for answers, deaths and stops, and ends what is left. The
// next process of a place is started while the others still wait for the one that is lost. Where clocks stand it moves these
// (Standstill.h).
#ifndef HEDDLE_TESTS_RANKS_LAUNCHER_H
#define HEDDLE_TESTS_RANKS_LAUNCHER_H

#include "Rank.h"
#include "Standstill.h"

#include <sys/types.h>

namespace heddle::ranks {

struct Reply {
  enum class End { answered, died, stopped, hung } end = End::answered;
  Status status = {};
  bool isIntact = true;
  std::string words = {};
  bool isOk() const { return end == End::answered && status.isOk() && isIntact; }
};

struct TeamOptions {
  bool standsStill = true;
  double limitSeconds = 0;      // of groups; 0: what is the default
  double patienceSeconds = 120; // until a rank that does not answer is said to hang
};

class Team {
public:
  Team(int ranks, const std::vector<Attempt> &attempts, Kernels &kernels, const TeamOptions &options);
  Team(const Team &) = delete;
  ~Team();

  // Answers by place in `members`, each a number of a process.
  std::vector<Reply> order(const std::vector<int> &members, const std::vector<std::string> &orders);
  Reply order(int member, const std::string &text) { return order(std::vector<int>{member}, {text})[0]; }
  // Gives the order for each of these attempts to one process, side by side. The answer that is not ok, or the last.
  Reply spread(const std::string &verb, const std::vector<size_t> &numbers);
  // Kernels of the first attempts are compiled, all at once, each by one process: others find them in the database.
  Reply makeKernels(size_t count);
  // Of a group of these members, ranks in this order, whose id the first one makes: "try" joins, calls and leaves,
  // "join" joins.
  // `before`: once there is an id.
  std::vector<Reply> meet(const std::vector<int> &members, const std::string &verb, size_t attempt,
                          const std::function<void()> &before = {});
  static std::vector<int> firstOf(int ranks);
  void setLimit(double seconds) { options.limitSeconds = seconds; }
  // What all processes do from now on before they take the place of one that is lost.
  void setWelcome(std::string order) { welcome = std::move(order); }
  // In the place of each that died, stopped or hung another process. The welcome that is not ok, or the last.
  Reply replaceLost();

private:
  struct Process {
    pid_t id = 0;
    int channel = -1;
    bool owesAnswer = false; // to the welcome
  };
  struct Member {
    Process now, next; // next: once it is lost
    bool isStopped = false, isLost = false;
  };
  Process start(int number) const;
  void lose(int number);
  bool settle(int number, Reply &reply);
  std::vector<Reply> await(const std::vector<int> &of);
  void end(const Process &process);
  void reap(bool isLast);

  TeamOptions options;
  const std::vector<Attempt> &attempts;
  Kernels &kernels;
  std::vector<Member> members;
  std::string welcome;
  std::vector<pid_t> ending; // killed, and perhaps still there: a driver takes its time
  Standstill standstill;
};

} // namespace heddle::ranks

#endif
