// One item per line, words separated by one space; ranges are BEGIN:END, runs FIRST:RATE:COUNT:
//   heddle-group-plan 4 | pattern DIGEST | sizes ROWS HEADS KV_HEADS BATCHES | whole ARGUMENT ...
//   size ARGUMENT VALUE NAME               of the pattern, where it has some
//   rows-of ARGUMENT ROW_BYTES OF_BATCHES OF_HEADS OF_KEYS NAME   likewise; OF: 0 or 1
//   rank RANGE ...
//   teams RANKS_OF_A_TEAM                  where these exchange heads; ranks and heads of walks are those of its members
//   walk forward|gradients|transposed|keys, then blocks RANGE ... for each rank, then for each step
//   step | hop FROM TO | part FIRST_HEAD HEADS RUN ... | of RANK | window RANGE | blank RANGE
//   launch ROWS window|own|aside INDEX RANGE | guests HOME ROWS | meet RANK OWN RANGE
#include "runtime/Core/GroupPlan.h"

#include <array>
#include <cstdarg>
#include <charconv>
#include <cstdio>
#include <string_view>

namespace heddle {
namespace {

constexpr const char *kHeader = "heddle-group-plan 4";

long long num(int64_t value) { return value; }

// Of printf: sums of strings would be a good part of this file.
[[gnu::format(printf, 2, 3), gnu::noinline]] void add(std::string &text, const char *format, ...) {
  char words[256];
  va_list numbers;
  va_start(numbers, format);
  std::vsnprintf(words, sizeof words, format, numbers);
  va_end(numbers);
  text += words;
}

[[gnu::noinline]] void addRange(std::string &text, const char *name, const RowRange &range, const char *behind = "\n") {
  add(text, "%s %lld:%lld%s", name, num(range.begin), num(range.end), behind);
}

void printRanges(std::string &text, const char *name, const std::vector<RowRange> &ranges) {
  text += name;
  for (const RowRange &range : ranges)
    addRange(text, "", range, "");
  text += "\n";
}

// By their names.
template <class Plan> auto walksOf(Plan &plan) {
  return std::array{std::pair("forward", &plan.forward), std::pair("gradients", &plan.gradients),
                    std::pair("transposed", &plan.transposed), std::pair("keys", &plan.keys)};
}

void printStep(std::string &text, const GroupStep &step) {
  text += "step\n";
  for (const Hop &hop : step.hops) {
    add(text, "hop %d %d\n", hop.from, hop.to);
    for (const HeadRows &part : hop.parts) {
      add(text, "part %lld %lld", num(part.firstHead), num(part.heads));
      for (const RowRun &run : part.rows)
        add(text, " %lld:%lld:%lld", num(run.first), num(run.rate), num(run.count));
      text += "\n";
    }
  }
  for (size_t rank = 0; rank < step.ranks.size(); ++rank) {
    add(text, "of %d\n", int(rank));
    for (const RowRange &window : step.ranks[rank].windows)
      addRange(text, "window", window);
    for (const RowRange &blank : step.ranks[rank].blanks)
      addRange(text, "blank", blank);
    for (const ShardLaunch &launch : step.ranks[rank].launches) {
      const bool isOfWindow = launch.window >= 0;
      add(text, "launch %d %s %d", launch.rows,
          isOfWindow       ? "window"
          : launch.isAside ? "aside"
                           : "own",
          isOfWindow ? launch.window : launch.own);
      addRange(text, "", launch.columns);
    }
  }
}

void printGuests(std::string &text, const GuestRows &guests) {
  add(text, "guests %d %d\n", guests.home, guests.rows);
  for (const GuestRows::Meeting &meeting : guests.meetings) {
    add(text, "meet %d %d", meeting.rank, meeting.own);
    addRange(text, "", meeting.columns);
  }
}

// The words of one line, taken from the front.
class Words {
public:
  explicit Words(std::string_view line) : rest(line) {}

  bool isEnd() const { return rest.empty(); }
  std::string_view word() {
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
  }
  int64_t number() { return numbers(word(), 1)[0]; }
  RowRange range() {
    const std::vector<int64_t> ends = numbers(word(), 2);
    return {ends[0], ends[1]};
  }
  RowRun run() {
    const std::vector<int64_t> parts = numbers(word(), 3);
    return {parts[0], parts[1], parts[2]};
  }
  bool isWrong = false;

private:
  // As many as wanted, separated by colons; else zeros, and the line is wrong.
  std::vector<int64_t> numbers(std::string_view text, size_t count) {
    std::vector<int64_t> values(count, 0);
    const char *at = text.data(), *end = at + text.size();
    for (size_t i = 0; i < count; ++i) {
      const auto [next, error] = std::from_chars(at, end, values[i]);
      const bool isLast = i + 1 == count;
      if (error != std::errc() || (isLast ? next != end : next == end || *next != ':')) {
        isWrong = true;
        return std::vector<int64_t>(count, 0);
      }
      at = next + 1;
    }
    return values;
  }
  std::string_view rest;
};

class PlanReader {
public:
  Result<GroupPlan> read(const std::string &text) {
    size_t begin = 0;
    for (int number = 1; begin < text.size(); ++number) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      if (!readLine(std::string_view(text).substr(begin, end - begin), number == 1))
        return Status::corrupt("group plan: line " + std::to_string(number) + ": not understood");
      begin = end + 1;
    }
    if (!plan.rows)
      return Status::corrupt("group plan: expected " + std::string(kHeader) + " and sizes, got neither");
    HEDDLE_TRY(plan.check());
    return std::move(plan);
  }

private:
  bool readLine(std::string_view line, bool isFirst) {
    if (isFirst)
      return line == kHeader;
    Words words(line);
    const std::string_view name = words.word();
    return (readHead(name, words) || readWalk(name, words)) && !words.isWrong && words.isEnd();
  }

  bool readHead(std::string_view name, Words &words) {
    if (name == "pattern")
      plan.digest = words.word();
    else if (name == "sizes")
      plan.rows = words.number(), plan.heads = words.number(), plan.kvHeads = words.number(),
      plan.batches = words.number();
    else if (name == "teams")
      return (plan.headRanks = int32_t(words.number())) > 0;
    else if (name == "whole")
      while (!words.isEnd())
        plan.wholes.push_back(words.number());
    else if (name == "size") {
      PlannedSize &size = plan.sizes.emplace_back();
      size.argument = words.number(), size.value = words.number(), size.name = words.word();
    } else if (name == "rows-of") {
      RowTensor &tensor = plan.rowTensors.emplace_back();
      tensor.argument = words.number(), tensor.rowBytes = words.number();
      for (bool *isOf : {&tensor.isOfBatches, &tensor.isOfHeads, &tensor.isOfKeys})
        *isOf = words.number() != 0;
      tensor.name = words.word();
    } else if (name == "rank")
      for (plan.layout.emplace_back(); !words.isEnd();)
        plan.layout.back().push_back(words.range());
    else
      return false;
    return true;
  }

  bool readWalk(std::string_view name, Words &words) {
    if (name == "walk") {
      const std::string_view which = words.word();
      walk = nullptr;
      for (const auto &[known, place] : walksOf(plan))
        walk = which == known ? place : walk;
      return walk;
    }
    if (!walk)
      return false;
    if (name == "blocks") {
      for (walk->blocks.emplace_back(); !words.isEnd();)
        walk->blocks.back().push_back(words.range());
      return true;
    }
    if (name == "step") {
      walk->steps.emplace_back().ranks.resize(plan.layout.size() / size_t(plan.headRanks));
      ofRank = nullptr;
      return true;
    }
    if (name == "guests") {
      GuestRows &guests = walk->guests.emplace_back();
      guests.home = int32_t(words.number()), guests.rows = int32_t(words.number());
      return true;
    }
    if (name == "meet" && !walk->guests.empty()) {
      GuestRows::Meeting &meeting = walk->guests.back().meetings.emplace_back();
      meeting.rank = int32_t(words.number()), meeting.own = int32_t(words.number()), meeting.columns = words.range();
      return true;
    }
    return !walk->steps.empty() && readStep(name, words, walk->steps.back());
  }

  bool readStep(std::string_view name, Words &words, GroupStep &step) {
    if (name == "hop") {
      Hop &hop = step.hops.emplace_back();
      hop.from = int32_t(words.number()), hop.to = int32_t(words.number());
    } else if (name == "part" && !step.hops.empty()) {
      HeadRows &part = step.hops.back().parts.emplace_back();
      part.firstHead = words.number(), part.heads = words.number();
      while (!words.isEnd())
        part.rows.push_back(words.run());
    } else if (name == "of") {
      const int64_t rank = words.number();
      if (rank < 0 || size_t(rank) >= step.ranks.size())
        return false;
      ofRank = &step.ranks[size_t(rank)];
    } else if (name == "window" && ofRank) {
      ofRank->windows.push_back(words.range());
    } else if (name == "blank" && ofRank) {
      ofRank->blanks.push_back(words.range());
    } else if (name == "launch" && ofRank) {
      ShardLaunch &launch = ofRank->launches.emplace_back();
      launch.rows = int32_t(words.number());
      const std::string_view place = words.word();
      launch.isAside = place == "aside";
      (place == "window" ? launch.window : launch.own) = int32_t(words.number());
      launch.columns = words.range();
    } else {
      return false;
    }
    return true;
  }

  GroupPlan plan;
  GroupWalk *walk = nullptr;
  ShardStep *ofRank = nullptr;
};

} // namespace

std::string GroupPlan::text() const {
  std::string text = std::string(kHeader) + "\npattern " + digest;
  add(text, "\nsizes %lld %lld %lld %lld\nwhole", num(rows), num(heads), num(kvHeads), num(batches));
  for (int64_t argument : wholes)
    add(text, " %lld", num(argument));
  text += "\n";
  for (const PlannedSize &size : sizes) {
    add(text, "size %lld %lld ", num(size.argument), num(size.value));
    text += size.name + "\n";
  }
  for (const RowTensor &tensor : rowTensors) {
    add(text, "rows-of %lld %lld %d %d %d ", num(tensor.argument), num(tensor.rowBytes), tensor.isOfBatches,
        tensor.isOfHeads, tensor.isOfKeys);
    text += tensor.name + "\n";
  }
  for (const std::vector<RowRange> &ranges : layout)
    printRanges(text, "rank", ranges);
  if (headRanks > 1)
    add(text, "teams %d\n", headRanks);
  for (const auto &[name, walk] : walksOf(*this)) {
    if (walk->steps.empty())
      continue;
    add(text, "walk %s\n", name);
    for (const std::vector<RowRange> &blocks : walk->blocks)
      printRanges(text, "blocks", blocks);
    for (const GroupStep &step : walk->steps)
      printStep(text, step);
    for (const GuestRows &guests : walk->guests)
      printGuests(text, guests);
  }
  return text;
}

Result<GroupPlan> GroupPlan::parse(const std::string &text) { return PlanReader().read(text); }

} // namespace heddle
