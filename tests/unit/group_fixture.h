// What tests of calls over ranks share: patterns with arguments, the tensors of a call and of a rank's share of it, ranks as
// threads.
#ifndef HEDDLE_TESTS_UNIT_GROUP_FIXTURE_H
#define HEDDLE_TESTS_UNIT_GROUP_FIXTURE_H

#include "support/LibraryFiles.h"
#include "library_fixture.h"
#include "runtime/Include/heddle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace heddle::test {

namespace api = heddle::api;

using Values = std::vector<float>;
inline constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 8;

struct HeadCounts {
  int64_t q = kHeads, kv = kKvHeads;
};

using PlanHandle = std::unique_ptr<heddle_group_plan, Closer<heddle_group_plan, heddle_group_plan_close>>;
using GroupHandle = std::unique_ptr<heddle_group, Closer<heddle_group, heddle_group_close>>;

inline Values waves(int64_t count, double step) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(std::sin(double(i) * step + 1));
  return values;
}

// Of a pattern: an entry for each query. Of one batch element, of whose heads each has `rows` of `rowBytes`.
struct QueryTensor {
  int32_t id = 0;
  int64_t heads = 1, rows = 0, rowBytes = 0;
  std::vector<char> bytes;
};

// A pattern, and what it is given.
struct Case {
  std::string name;
  HeadCounts heads;
  PatternHandle whole, part;
  std::vector<heddle_operand> operands;
  std::vector<std::vector<int32_t>> integers;
  std::vector<Values> reals;
  std::vector<QueryTensor> ofQueries;

  void giveSize(int32_t id, int64_t value) {
    heddle_operand &operand = operands.emplace_back();
    operand.id = id, operand.kind = HEDDLE_OPERAND_INT, operand.value.i64 = value;
  }
  void giveTensor(int32_t id, const void *address) {
    heddle_operand &operand = operands.emplace_back();
    operand.id = id, operand.kind = HEDDLE_OPERAND_POINTER, operand.value.ptr = address;
  }
  void giveIntegers(int32_t id, std::vector<int32_t> values) {
    integers.push_back(std::move(values));
    giveTensor(id, integers.back().data());
    giveSize(id, int64_t(integers.back().size()));
  }
};

// Lists of key blocks: of its own block, the one before it, and every third one before those.
inline void giveLists(Case &made, int32_t offsets, int32_t indices, int64_t blocks) {
  std::vector<int32_t> at, of;
  for (int64_t list = 0; list < kHeads; ++list) {
    at.push_back(int32_t(of.size()));
    for (int64_t row = 0; row < blocks; ++row) {
      for (int64_t key = 0; key <= row; ++key)
        if (row - key < 2 || (row - key + list) % 3 == 0)
          of.push_back(int32_t(key));
      at.push_back(int32_t(of.size()));
    }
  }
  made.integers.push_back(std::move(at));
  made.giveTensor(offsets, made.integers.back().data());
  made.giveSize(offsets, blocks + 1);
  made.giveIntegers(indices, std::move(of));
}

// "memref<1x?x?x?xbf16>": ? and numbers, then the element.
inline std::vector<std::string> wordsOfType(const std::string &type) {
  std::vector<std::string> words(1);
  for (char letter : type.substr(0, type.find('>')).substr(type.find('<') + 1))
    if (letter == 'x')
      words.emplace_back();
    else
      words.back() += letter;
  return words;
}

// [batch, heads, queries, keys] of a call of so many rows, of bf16 or fp32.
inline void giveBias(Case &made, int32_t id, const std::string &type, int64_t rows) {
  const std::vector<std::string> words = wordsOfType(type);
  const int64_t heads = words[1] == "?" ? made.heads.q : 1, queries = words[2] == "?" ? rows : 1,
                keys = words[3] == "?" ? rows : 1;
  const Values values = waves(heads * queries * keys, 0.61 + 0.1 * id);
  const size_t bytes = words[4] == "bf16" ? 2 : 4;
  CHECK((bytes == 2 || words[4] == "f32"));
  QueryTensor &bias = made.ofQueries.emplace_back();
  bias.id = id, bias.heads = heads, bias.rows = queries, bias.rowBytes = keys * int64_t(bytes);
  bias.bytes.resize(values.size() * bytes);
  for (size_t i = 0; i < values.size(); ++i) // of bf16 the upper half
    std::memcpy(&bias.bytes[i * bytes], reinterpret_cast<const char *>(&values[i]) + sizeof(float) - bytes, bytes);
  made.giveTensor(id, bias.bytes.data());
}

inline void giveArguments(Case &made, int64_t rows, bool small) {
  auto info = sized<heddle_pattern_info>();
  CHECK_OK(heddle_pattern_get_info(made.whole.get(), &info));
  int32_t lists = -1;
  for (int32_t i = 0; i < info.argument_count; ++i) {
    auto argument = sized<heddle_pattern_argument>();
    CHECK_OK(heddle_pattern_get_argument(made.whole.get(), i, &argument));
    const std::string name = argument.name;
    if (argument.kind == HEDDLE_OPERAND_INT && small)
      made.giveSize(i, std::max<int64_t>(19, argument.min_int));
    if (argument.kind != HEDDLE_OPERAND_POINTER)
      continue;
    if (wordsOfType(argument.type).size() == 5)
      giveBias(made, i, argument.type, rows);
    else if (name == "offsets")
      lists = i;
    else if (name == "indices")
      giveLists(made, lists, i, std::string(info.name) == "block_topk" ? (rows + 63) / 64 : (rows + 127) / 128);
    else if (name == "cu")
      made.giveIntegers(i, {0, 17, 17, 90, int32_t(rows)});
    else {
      made.reals.push_back(waves(kHeads * (name == "table" ? 39 : 1), 0.61));
      made.giveTensor(i, made.reals.back().data());
      if (argument.takes_length)
        made.giveSize(i, name == "table" ? 39 : kHeads);
    }
  }
}

// Null where calls of the pattern cannot be parts.
inline std::unique_ptr<Case> caseOf(const std::string &path, int64_t rows, bool small) {
  auto made = std::make_unique<Case>();
  made->name = std::filesystem::path(path).stem().string();
  made->integers.reserve(8), made->reals.reserve(8), made->ofQueries.reserve(8); // operands point into them
  heddle_pattern *pattern = nullptr;
  CHECK_OK(heddle_pattern_read(path.c_str(), nullptr, &pattern));
  made->whole.reset(pattern);
  if (heddle_pattern_part(pattern, &pattern) != HEDDLE_OK)
    return nullptr;
  made->part.reset(pattern);
  giveArguments(*made, rows, small);
  return made;
}

// The tensors of one call, or of one rank's share.
struct Share {
  explicit Share(int64_t rows, HeadCounts heads = {})
      : rows(rows), heads(heads), q(rows * heads.q * kDim), k(rows * heads.kv * kDim), v(k.size()), out(q.size(), NAN),
        lse(rows * heads.q, NAN), dOut(q.size()), dLse(lse.size()), dQ(q.size(), NAN), dK(k.size(), NAN),
        dV(k.size(), NAN) {}

  int64_t rows;
  HeadCounts heads;
  Values q, k, v, out, lse, dOut, dLse, dQ, dK, dV;

  heddle_tensor tensorOf(Values &values, int64_t ofHeads) {
    return api::contiguous(values.data(), HEDDLE_FP32, {1, rows, ofHeads, kDim});
  }
  heddle_attention_args forward(const Case &of) {
    auto args = sized<heddle_attention_args>();
    args.q = tensorOf(q, heads.q), args.k = tensorOf(k, heads.kv), args.v = tensorOf(v, heads.kv);
    args.out = tensorOf(out, heads.q), args.lse = lse.data();
    args.operands = of.operands.data(), args.operand_count = of.operands.size();
    return args;
  }
  heddle_attention_args backward(const Case &of) {
    heddle_attention_args args = forward(of);
    args.d_out = tensorOf(dOut, heads.q), args.d_lse = dLse.data();
    args.d_q = tensorOf(dQ, heads.q), args.d_k = tensorOf(dK, heads.kv), args.d_v = tensorOf(dV, heads.kv);
    return args;
  }
  std::vector<std::pair<Values Share::*, int64_t>> tensors() const {
    return {{&Share::q, heads.q * kDim},   {&Share::k, heads.kv * kDim},   {&Share::v, heads.kv * kDim},
            {&Share::out, heads.q * kDim}, {&Share::dOut, heads.q * kDim}, {&Share::dQ, heads.q * kDim},
            {&Share::dK, heads.kv * kDim}, {&Share::dV, heads.kv * kDim}};
  }
};

inline Share wholeCall(const Case &of, int64_t rows) {
  Share whole(rows, of.heads);
  whole.q = waves(int64_t(whole.q.size()), 0.37), whole.k = waves(int64_t(whole.k.size()), 0.11);
  whole.v = waves(int64_t(whole.v.size()), 0.05), whole.dOut = waves(int64_t(whole.q.size()), 0.71);
  whole.dLse = waves(int64_t(whole.lse.size()), 0.43);
  heddle_attention_args args = whole.forward(of);
  CHECK_OK(heddle_cpu_run(of.whole.get(), nullptr, &args, 1));
  args = whole.backward(of);
  CHECK_OK(heddle_cpu_run(of.whole.get(), "backward", &args, 1));
  return whole;
}

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

// What the text of a plan says of it.
struct PlanFacts {
  std::vector<Ranges> ranks;
  int64_t headRows = 0; // of k that travel forward
};

inline PlanFacts factsOf(const heddle_group_plan *plan) {
  auto info = sized<heddle_group_plan_info>();
  CHECK_OK(heddle_group_plan_get_info(plan, &info));
  PlanFacts facts;
  facts.headRows = info.travelling;
  std::string text = info.text, line;
  for (size_t at = 0; at < text.size(); at += line.size() + 1) {
    line = text.substr(at, text.find('\n', at) - at);
    if (line.rfind("rank ", 0) != 0)
      continue;
    Ranges &ranges = facts.ranks.emplace_back();
    for (const char *word = line.c_str() + 4; *word == ' ';) {
      char *end = nullptr;
      const int64_t first = std::strtoll(word + 1, &end, 10), last = std::strtoll(end + 1, &end, 10);
      ranges.push_back({first, last});
      word = end;
    }
  }
  return facts;
}

// Copies a rank's rows out of the whole, or back.
inline void moveRows(Share &whole, Share &share, const Ranges &ranges, bool isToWhole) {
  int64_t own = 0;
  for (const auto &[first, last] : ranges) {
    for (const auto &[member, width] : whole.tensors()) {
      float *there = (whole.*member).data() + first * width, *here = (share.*member).data() + own * width;
      std::copy_n(isToWhole ? here : there, (last - first) * width, isToWhole ? there : here);
    }
    for (Values Share::*member : {&Share::lse, &Share::dLse})
      for (int64_t head = 0; head < whole.heads.q; ++head) {
        float *there = (whole.*member).data() + head * whole.rows + first;
        float *here = (share.*member).data() + head * share.rows + own;
        std::copy_n(isToWhole ? here : there, last - first, isToWhole ? there : here);
      }
    own += last - first;
  }
}

/// None where the form does not take the heads.
inline PlanHandle planIfAny(const Case &of, int64_t rows, int32_t ranks, const std::string &layout, const char *form,
                            uint32_t flags = 0, bool isAsked = false) {
  auto options = sized<heddle_group_options>();
  options.ranks = ranks;
  options.seqlen = rows, options.heads = of.heads.q, options.kv_heads = of.heads.kv;
  options.layout = layout.c_str(), options.form = form, options.flags = flags;
  options.farthest_gap = 40;
  options.operands = of.operands.data(), options.operand_count = of.operands.size();
  heddle_group_plan *plan = nullptr;
  const heddle_status status = heddle_group_plan_make(of.whole.get(), &options, &plan);
  const bool mayRefuse = !isAsked && std::string(form).rfind("ulysses", 0) == 0;
  CHECK_MESSAGE((status == HEDDLE_OK || mayRefuse), heddle_last_message());
  return PlanHandle(plan);
}

inline PlanHandle planOf(const Case &of, int64_t rows, int32_t ranks, const std::string &layout, const char *form,
                         uint32_t flags = 0) {
  return planIfAny(of, rows, ranks, layout, form, flags, /*isAsked=*/true);
}

inline std::vector<GroupHandle> openGroup(int32_t ranks, double limit = 0) {
  std::vector<heddle_group *> handles(static_cast<size_t>(ranks));
  CHECK_OK(heddle_group_open_local(ranks, limit, handles.data()));
  return {handles.begin(), handles.end()};
}

struct Outcome {
  heddle_status status = HEDDLE_OK;
  std::string message;
};

// Every rank in a thread of its own.
inline std::vector<Outcome> onRanks(int32_t ranks, const std::function<heddle_status(int32_t)> &run) {
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      outcomes[size_t(rank)].status = run(rank);
      if (outcomes[size_t(rank)].status != HEDDLE_OK)
        outcomes[size_t(rank)].message = heddle_last_message();
    });
  for (std::thread &thread : threads)
    thread.join();
  return outcomes;
}

// What a rank gives the pattern: its rows of tensors with an entry for each query.
class RankOperands {
public:
  RankOperands(const Case &of, const Ranges &ranges) : operands(of.operands) {
    for (const QueryTensor &whole : of.ofQueries) {
      std::vector<char> &own = tensors.emplace_back();
      for (int64_t head = 0; head < whole.heads; ++head)
        for (const auto &[first, last] : whole.rows > 1 ? ranges : Ranges{{0, 1}}) {
          const char *from = whole.bytes.data() + (head * whole.rows + first) * whole.rowBytes;
          own.insert(own.end(), from, from + (last - first) * whole.rowBytes);
        }
      for (heddle_operand &operand : operands)
        if (operand.id == whole.id)
          operand.value.ptr = own.data();
    }
  }
  RankOperands(const RankOperands &) = delete;

  void give(heddle_attention_args &args) const {
    args.operands = operands.data(), args.operand_count = operands.size();
  }

private:
  std::vector<heddle_operand> operands;
  std::deque<std::vector<char>> tensors;
};

inline Share overRanks(const Case &of, const Share &whole, const heddle_group_plan *plan) {
  const PlanFacts facts = factsOf(plan);
  const int32_t ranks = int32_t(facts.ranks.size());
  std::vector<GroupHandle> groups = openGroup(ranks);
  Share result = whole;
  std::fill(result.out.begin(), result.out.end(), NAN), std::fill(result.lse.begin(), result.lse.end(), NAN);
  for (Values Share::*member : {&Share::dQ, &Share::dK, &Share::dV})
    std::fill((result.*member).begin(), (result.*member).end(), NAN);
  std::vector<Share> shares;
  for (const Ranges &ranges : facts.ranks) {
    int64_t rows = 0;
    for (const auto &[first, last] : ranges)
      rows += last - first;
    shares.emplace_back(rows, of.heads);
    moveRows(result, shares.back(), ranges, /*isToWhole=*/false);
  }
  const std::vector<Outcome> outcomes = onRanks(ranks, [&](int32_t rank) {
    Share &share = shares[size_t(rank)];
    const RankOperands operands(of, facts.ranks[size_t(rank)]);
    heddle_attention_args args = share.forward(of);
    operands.give(args);
    const heddle_status status = heddle_group_run(groups[size_t(rank)].get(), plan, of.part.get(), nullptr, &args, 1);
    if (status != HEDDLE_OK)
      return status;
    args = share.backward(of);
    operands.give(args);
    return heddle_group_run(groups[size_t(rank)].get(), plan, of.part.get(), "backward", &args, 1);
  });
  for (const Outcome &outcome : outcomes)
    CHECK_MESSAGE(outcome.status == HEDDLE_OK, outcome.message);
  for (size_t rank = 0; rank < shares.size(); ++rank)
    moveRows(result, shares[rank], facts.ranks[rank], /*isToWhole=*/true);
  return result;
}

inline double farthest(const Values &a, const Values &b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] || std::isnan(a[i]))
      most = std::isfinite(a[i]) && std::isfinite(b[i]) ? std::max(most, std::abs(double(a[i]) - b[i])) : INFINITY;
  return most;
}

inline void checkAlike(const Share &got, const Share &expected) {
  CHECK(farthest(got.out, expected.out) <= 2e-6);
  CHECK(farthest(got.lse, expected.lse) <= 4e-6);
  CHECK(farthest(got.dQ, expected.dQ) <= 1e-5);
  CHECK(farthest(got.dK, expected.dK) <= 2e-5);
  CHECK(farthest(got.dV, expected.dV) <= 2e-5);
}

inline bool sameBits(const Share &a, const Share &b) {
  for (Values Share::*member : {&Share::out, &Share::lse, &Share::dQ, &Share::dK, &Share::dV})
    if (std::memcmp((a.*member).data(), (b.*member).data(), (a.*member).size() * sizeof(float)) != 0)
      return false;
  return true;
}

} // namespace heddle::test

#endif
