// Send budgets over all small shapes: the lists against PyTorch's pass written down as a search in
// a graph, and the steps and held outputs against a plain interpreter of posted lists, in the modes
// in which a send ends with its message or at once.
#include "sim/ir/send_budget.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/op_kinds.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"
#include "tests/support/list_interpreter.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

using Lists = std::vector<RankOrder>;

void for_each_schedule(const std::function<void(const std::string&, const ValidSchedule&)>& visit) {
  for (const char* name :
       {"gpipe", "1f1b", "eager-1f1b", "interleaved", "bfs", "zb-h1", "zb-v", "dualpipev",
        "dualpipe", "hanayo", "chimera", "seq1f1b", "forward-only"}) {
    const ScheduleDef& def = find_schedule(name);
    for (const std::int32_t ranks : {1, 2, 3, 4})
      for (const std::int32_t microbatches : {1, 2, 4, 7}) {
        ScheduleRequest request;
        request.shape = {ranks,
                         def.implied_chunks.value_or(def.default_chunks),
                         microbatches,
                         def.default_slices,
                         {}};
        if (def.refuse && !def.refuse(request).empty()) continue;
        const std::string what = std::string(name) + " p=" + std::to_string(ranks) +
                                 " m=" + std::to_string(microbatches);
        visit(what, build_schedule(def, request));
      }
  }
}

/// PyTorch's _add_wait_send_budget: every question is a search through all edges.
class GraphBudget {
 public:
  GraphBudget(const Schedule& schedule, const Lists& lists, std::size_t budget)
      : schedule_(schedule), lists_(lists), budget_(budget) {}

  /// nullopt where the budget cannot be kept.
  std::optional<Lists> run() {
    number();
    Lists limited;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      std::optional<RankOrder> list = limit(rank);
      if (!list) return std::nullopt;
      limited.push_back(*std::move(list));
    }
    return limited;
  }

 private:
  std::optional<RankOrder> limit(std::size_t rank) {
    RankOrder list;
    std::vector<Op> pending;
    for (std::size_t at = 0; at < lists_[rank].size(); ++at) {
      const Op& op = lists_[rank][at];
      const MessageKey key = key_of(schedule_, op);
      if (is_send_wait(op.kind) && moved_.contains(key)) continue;
      if (is_send_wait(op.kind))
        std::erase_if(pending, [&](const Op& send) { return key_of(schedule_, send) == key; });
      while (is_send(op.kind) && pending.size() >= budget_)
        if (!move_one(pending, node_.at({rank, at}), list)) return std::nullopt;
      if (is_send(op.kind)) pending.push_back(op);
      list.push_back(op);
    }
    return list;
  }

  void number() {
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      std::optional<int> before;
      for (std::size_t at = 0; at < lists_[rank].size(); ++at) {
        const Op& op = lists_[rank][at];
        if (is_send_wait(op.kind)) continue;
        const int node = static_cast<int>(node_.size());
        node_[{rank, at}] = node;
        if (before) edges_.insert({*before, node});
        before = node;
        if (is_recv(op.kind)) receive_[key_of(schedule_, op)] = node;
      }
    }
    for (std::size_t rank = 0; rank < lists_.size(); ++rank)
      for (std::size_t at = 0; at < lists_[rank].size(); ++at) {
        const Op& op = lists_[rank][at];
        if (is_send(op.kind))
          edges_.insert({node_.at({rank, at}), receive_.at(key_of(schedule_, op))});
        if (!is_send_wait(op.kind)) continue;
        std::size_t next = at;
        while (next < lists_[rank].size() && is_send_wait(lists_[rank][next].kind)) ++next;
        if (next < lists_[rank].size())
          edges_.insert({receive_.at(key_of(schedule_, op)), node_.at({rank, next})});
      }
  }

  bool reaches(int source, int target) const {
    std::set<int> seen{source};
    std::vector<int> left{source};
    while (!left.empty()) {
      const int node = left.back();
      left.pop_back();
      if (node == target) return true;
      for (auto edge = edges_.lower_bound({node, -1}); edge != edges_.end() && edge->first == node;
           ++edge)
        if (seen.insert(edge->second).second) left.push_back(edge->second);
    }
    return false;
  }

  bool move_one(std::vector<Op>& pending, int here, RankOrder& list) {
    std::optional<std::size_t> chosen;
    bool surely_received = false;
    for (std::size_t at = 0; at < pending.size() && !surely_received; ++at) {
      const int receive = receive_.at(key_of(schedule_, pending[at]));
      if (reaches(here, receive)) continue;
      surely_received = reaches(receive, here);
      if (surely_received || !chosen) chosen = at;
    }
    if (!chosen) return false;
    Op wait = pending[*chosen];
    pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(*chosen));
    edges_.insert({receive_.at(key_of(schedule_, wait)), here});
    moved_.insert(key_of(schedule_, wait));
    wait.kind =
        wait.kind == OpKind::kSendForward ? OpKind::kWaitSendForward : OpKind::kWaitSendBackward;
    list.push_back(wait);
    return true;
  }

  const Schedule& schedule_;
  const Lists& lists_;
  std::size_t budget_;
  std::map<std::pair<std::size_t, std::size_t>, int> node_;
  std::map<MessageKey, int> receive_;
  std::set<std::pair<int, int>> edges_;
  std::set<MessageKey> moved_;
};

std::optional<Lists> limit_or_refuse(const ValidSchedule& schedule, const Lists& lists,
                                     std::int32_t budget) {
  try {
    return limit_sends(schedule, lists, budget);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string text_of(const Lists& lists) {
  std::string text;
  for (const RankOrder& list : lists) {
    for (const Op& op : list) text += to_string(op) + " ";
    text += "\n";
  }
  return text;
}

/// How a budget changes the lists of a schedule.
enum class BudgetEffect : std::uint8_t { kNone, kMoves, kRefused };

/// Limits the sends of both, and expects the same lists.
BudgetEffect compare_with_graph(const ValidSchedule& schedule, const Lists& lists,
                                std::int32_t budget) {
  SCOPED_TRACE("K=" + std::to_string(budget));
  const auto ours = limit_or_refuse(schedule, lists, budget);
  const auto expected = GraphBudget(schedule, lists, static_cast<std::size_t>(budget)).run();
  EXPECT_EQ(ours.has_value(), expected.has_value());
  if (!ours || !expected) return BudgetEffect::kRefused;
  EXPECT_EQ(text_of(*ours), text_of(*expected));
  return *ours == lists ? BudgetEffect::kNone : BudgetEffect::kMoves;
}

TEST(SendBudgets, AreKeptAsBySearchesInAGraph) {
  std::map<BudgetEffect, int> effects;
  for_each_schedule([&](const std::string& what, const ValidSchedule& schedule) {
    SCOPED_TRACE(what);
    for (const ReceivePosting posting : {ReceivePosting::kAsap, ReceivePosting::kDeferred}) {
      const Lists lists = make_awaited_lists(schedule, posting, kUnlimitedSends);
      for (const std::int32_t budget : {1, 2, 4})
        ++effects[compare_with_graph(schedule, lists, budget)];
    }
  });
  EXPECT_GT(effects[BudgetEffect::kNone] + effects[BudgetEffect::kMoves] +
                effects[BudgetEffect::kRefused],
            400);
  EXPECT_GT(effects[BudgetEffect::kMoves], 100);
  RecordProperty("refused", effects[BudgetEffect::kRefused]);
}

UniformCost costs_with(Nanos message) {
  UniformCost cost;
  cost.forward = 120;
  cost.input_grad = 180;
  cost.weight_grad = 60;
  cost.message = message;
  return cost;
}

bool has_joint_ops(const Schedule& schedule) {
  return has_pairs(schedule) || schedule.fused_forwards > 1;
}

/// A mode, a message time and a budget.
struct BudgetCase {
  P2pMode mode = P2pMode::kDataflow;
  Nanos message = 0;
  std::int32_t budget = kUnlimitedSends;

  Config config() const {
    Config config;
    config.costs = UniformCosts{costs_with(message)};
    config.lower.mode = mode;
    return config;
  }

  std::string text() const {
    return "mode " + to_string(mode, 0) + " message " + std::to_string(message) +
           " K=" + std::to_string(budget);
  }
};

void expect_as_walked(const BubbleReport& report, const WalkedLists& walked, std::int32_t budget) {
  EXPECT_EQ(report.makespan, walked.makespan);
  for (std::size_t rank = 0; rank < walked.outputs.size(); ++rank) {
    const RankReport& row = report.ranks[rank];
    EXPECT_EQ(row.peak.outputs->count, walked.outputs[rank]) << "rank " << rank;
    EXPECT_EQ(row.busy + row.idle, report.makespan);
    if (budget != kUnlimitedSends) {
      EXPECT_LE(row.peak.outputs->count, budget + 1) << rank;
    }
  }
}

/// Returns whether the budget makes the step longer; nullopt where the step or the budget cannot
/// be.
std::optional<bool> compare_with_interpreter(const ValidSchedule& schedule,
                                             const BudgetCase& tried) {
  const Config unlimited = tried.config();
  Config limited = unlimited;
  limited.lower.send_budget = tried.budget;
  if (std::holds_alternative<Deadlock>(sim::lower(schedule, unlimited.lower))) return {};
  Lists lists;
  try {
    lists = make_awaited_lists(schedule, ReceivePosting::kAsap, tried.budget);
  } catch (const Error&) {
    return {};
  }
  if (std::holds_alternative<Deadlock>(sim::lower(schedule, limited.lower))) return {};
  const BubbleReport report = predict(schedule, limited).report;
  const CostModel costs = spread(costs_with(tried.message), schedule);
  expect_as_walked(report, walk_lists(schedule, lists, costs, tried.mode), tried.budget);
  const BubbleReport free = predict(schedule, unlimited).report;
  EXPECT_EQ(report.lower_bound, free.lower_bound);
  EXPECT_GE(report.makespan, free.makespan);
  if (tried.budget == kUnlimitedSends || tried.message == 0) {
    EXPECT_EQ(report.makespan, free.makespan);
  }
  return report.makespan > free.makespan;
}

/// All cases of the interpreter, which runs ops one by one.
std::vector<BudgetCase> list_budget_cases() {
  std::vector<BudgetCase> cases;
  for (const P2pMode mode : {P2pMode::kDataflow, P2pMode::kFifo, P2pMode::kRendezvous})
    for (const Nanos message : {0, 25, 400})
      for (const std::int32_t budget : {1, 2, 3, kUnlimitedSends})
        cases.push_back({mode, message, budget});
  return cases;
}

TEST(SendBudgets, AreTimedAndHeldAsAPlainInterpreterSays) {
  int compared = 0;
  int blocked = 0;
  for_each_schedule([&](const std::string& what, const ValidSchedule& schedule) {
    if (has_joint_ops(schedule)) return;
    for (const BudgetCase& tried : list_budget_cases()) {
      SCOPED_TRACE(what + " " + tried.text());
      const std::optional<bool> is_longer = compare_with_interpreter(schedule, tried);
      if (!is_longer) continue;
      ++compared;
      if (*is_longer) ++blocked;
    }
  });
  EXPECT_GT(compared, 1000);
  EXPECT_GT(blocked, 60);
}

void expect_same_times(const ValidSchedule& schedule, const BudgetCase& tried) {
  Config config = tried.config();
  if (std::holds_alternative<Deadlock>(sim::lower(schedule, config.lower))) return;
  const BubbleReport plain = predict(schedule, config).report;
  config.lower.send_budget = tried.budget;
  const BubbleReport held = predict(schedule, config).report;
  EXPECT_EQ(held.makespan, plain.makespan);
  for (std::size_t rank = 0; rank < held.ranks.size(); ++rank) {
    EXPECT_EQ(held.ranks[rank].idle_by_cause, plain.ranks[rank].idle_by_cause);
    EXPECT_LE(held.ranks[rank].peak.outputs->count, held.ranks[rank].sends);
  }
}

// In the modes of one list a send blocks its rank until it is done, so waits change no time.
TEST(SendBudgets, ChangeNoTimeWhereSendsBlockTheirRank) {
  for_each_schedule([&](const std::string& what, const ValidSchedule& schedule) {
    for (const P2pMode mode : {P2pMode::kHostRendezvous, P2pMode::kHostSend, P2pMode::kBatched}) {
      SCOPED_TRACE(what + " mode " + to_string(mode, 0));
      expect_same_times(schedule, {mode, 25, kUnlimitedSends});
    }
  });
}

}  // namespace
}  // namespace bubblescope::tests
