// Send budgets over all small shapes: the lists against PyTorch's pass written down as a search in
// a graph, and the steps and held outputs against a plain interpreter of posted lists, in the modes
// in which a send ends with its message or at once.
#include "sim/ir/send_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"
#include "tests/support/list_interpreter.h"
#include "tests/support/measured_schedule.h"
#include "traces/schedules/text_schedule.h"

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
      limited.emplace_back();
      std::vector<Op> pending;
      for (std::size_t at = 0; at < lists_[rank].size(); ++at) {
        const Op& op = lists_[rank][at];
        if (is_send_wait(op.kind)) {
          if (moved_.count(key_of(schedule_, op)) != 0) continue;
          std::erase_if(pending, [&](const Op& send) {
            return key_of(schedule_, send) == key_of(schedule_, op);
          });
        }
        if (is_send(op.kind)) {
          while (pending.size() >= budget_)
            if (!move_one(pending, node_.at({rank, at}), limited.back())) return std::nullopt;
          pending.push_back(op);
        }
        limited.back().push_back(op);
      }
    }
    return limited;
  }

 private:
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

TEST(SendBudgets, AreKeptAsBySearchesInAGraph) {
  int compared = 0;
  int refused = 0;
  int moved = 0;
  for_each_schedule([&](const std::string& what, const ValidSchedule& schedule) {
    for (const Lowering posting : {Lowering::kAsap, Lowering::kDeferred}) {
      const Lists lists = make_awaited_lists(schedule, posting, kUnlimitedSends);
      for (const std::int32_t budget : {1, 2, 4}) {
        const auto ours = limit_or_refuse(schedule, lists, budget);
        const auto expected = GraphBudget(schedule, lists, static_cast<std::size_t>(budget)).run();
        ASSERT_EQ(ours.has_value(), expected.has_value()) << what << " K=" << budget;
        ++compared;
        if (!ours) {
          ++refused;
          continue;
        }
        ASSERT_EQ(text_of(*ours), text_of(*expected)) << what << " K=" << budget;
        moved += *ours != lists;
      }
    }
  });
  EXPECT_GT(compared, 400);
  EXPECT_GT(moved, 100);
  RecordProperty("refused", refused);
}

UniformCost costs_with(Nanos message) {
  UniformCost cost;
  cost.forward = 120;
  cost.input_grad = 180;
  cost.weight_grad = 60;
  cost.message = message;
  return cost;
}

bool has_pairs(const Schedule& schedule) {
  for (const RankOrder& order : schedule.order)
    for (const Op& op : order)
      if (op.pairing != Pairing::kAlone) return true;
  return schedule.fused_forwards > 1;
}

TEST(SendBudgets, AreTimedAndHeldAsAPlainInterpreterSays) {
  int compared = 0;
  int blocked = 0;
  for_each_schedule([&](const std::string& what, const ValidSchedule& schedule) {
    if (has_pairs(schedule)) return;  // the interpreter runs ops one by one
    for (const P2pMode mode : {P2pMode::kDataflow, P2pMode::kFifo, P2pMode::kRendezvous})
      for (const Nanos message : {0, 25, 400})
        for (const std::int32_t budget : {1, 2, 3, kUnlimitedSends}) {
          Config config;
          config.costs = UniformCosts{costs_with(message)};
          config.lower.mode = mode;
          const auto plain = sim::lower(schedule, config.lower);
          config.lower.send_budget = budget;
          if (std::holds_alternative<Deadlock>(plain)) continue;
          Lists lists;
          try {
            lists = make_awaited_lists(schedule, Lowering::kAsap, budget);
          } catch (const Error&) {
            continue;
          }
          if (std::holds_alternative<Deadlock>(sim::lower(schedule, config.lower))) continue;
          const Prediction step = predict(schedule, config);
          const WalkedLists walked =
              walk_lists(schedule, lists, spread(costs_with(message), schedule), mode);
          const std::string where = what + " mode " + to_string(mode, 0) + " message " +
                                    std::to_string(message) + " K=" + std::to_string(budget);
          ASSERT_EQ(step.report.makespan, walked.makespan) << where;
          for (std::size_t rank = 0; rank < walked.outputs.size(); ++rank) {
            const RankReport& report = step.report.ranks[rank];
            ASSERT_EQ(report.peak.outputs->count, walked.outputs[rank])
                << where << " rank " << rank;
            ASSERT_EQ(report.busy + report.idle, step.report.makespan) << where;
            if (budget != kUnlimitedSends) {
              ASSERT_LE(report.peak.outputs->count, budget + 1) << where << " rank " << rank;
            }
          }
          config.lower.send_budget.reset();
          const BubbleReport unlimited = predict(schedule, config).report;
          const Nanos free = unlimited.makespan;
          ASSERT_EQ(step.report.lower_bound, unlimited.lower_bound) << where;
          if (budget == kUnlimitedSends || message == 0) {
            ASSERT_EQ(step.report.makespan, free) << where;
          }
          ASSERT_GE(step.report.makespan, free) << where;
          blocked += step.report.makespan > free;
          ++compared;
        }
  });
  EXPECT_GT(compared, 1000);
  EXPECT_GT(blocked, 60);
}

// In the modes of one list a send blocks its rank until it is done, so waits change no time.
TEST(SendBudgets, ChangeNoTimeWhereSendsBlockTheirRank) {
  for_each_schedule([&](const std::string& what, const ValidSchedule& schedule) {
    for (const P2pMode mode : {P2pMode::kHostRendezvous, P2pMode::kHostSend, P2pMode::kBatched}) {
      Config config;
      config.costs = UniformCosts{costs_with(25)};
      config.lower.mode = mode;
      if (std::holds_alternative<Deadlock>(sim::lower(schedule, config.lower))) continue;
      const Prediction plain = predict(schedule, config);
      config.lower.send_budget = kUnlimitedSends;
      const Prediction held = predict(schedule, config);
      ASSERT_EQ(held.report.makespan, plain.report.makespan) << what;
      for (std::size_t rank = 0; rank < held.report.ranks.size(); ++rank) {
        ASSERT_EQ(held.report.ranks[rank].idle_by_cause, plain.report.ranks[rank].idle_by_cause);
        ASSERT_LE(held.report.ranks[rank].peak.outputs->count, held.report.ranks[rank].sends);
      }
    }
  });
}

}  // namespace
}  // namespace bubblescope::tests
