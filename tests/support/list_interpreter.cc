// Runs the cells of every rank as soon as what they need is known.
#include "tests/support/list_interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/depend.h"

namespace bubblescope::tests {

MessageKey key_of(const Schedule& schedule, const Op& op) {
  const Value value = *find_carried_value(schedule, op);
  return {value.stage, value.microbatch, value.slice, value.value_kind == ValueKind::kActivation};
}

namespace {

using Lists = std::vector<RankOrder>;

/// Runs posted lists cell by cell, each as soon as what it needs is known: a rank's compute ops in
/// one queue, and where messages are posted these in another.
class ListInterpreter {
 public:
  ListInterpreter(const ValidSchedule& schedule, const Lists& lists, const CostModel& costs,
                  P2pMode mode)
      : schedule_(schedule), lists_(lists), costs_(costs), mode_(mode) {}

  WalkedLists run() {
    queues_.resize(2 * lists_.size());
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t rank = 0; rank < lists_.size(); ++rank)
        for (const bool computes : {true, false})
          while (step(rank, computes)) moves = true;
    }
    WalkedLists walked;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      EXPECT_EQ(queue(rank, true).at, lists_[rank].size()) << "the step does not end";
      walked.outputs.push_back(find_most(rank));
    }
    Nanos first = -1;
    for (const auto& [op, span] : spans_) {
      first = first < 0 ? span.first : std::min(first, span.first);
      walked.makespan = std::max(walked.makespan, span.second);
    }
    walked.makespan -= first;
    return walked;
  }

 private:
  struct Queue {
    std::size_t at = 0;
    Nanos time = 0;     ///< when its last cell has ended
    Nanos awaited = 0;  ///< by what its next cell waits for
  };
  using OpKey = std::tuple<OpKind, std::int32_t, std::int32_t, std::int16_t>;

  Queue& queue(std::size_t rank, bool computes) { return queues_[2 * rank + (computes ? 1 : 0)]; }
  static OpKey name(const Op& op) { return {op.kind, op.stage, op.microbatch, op.slice}; }
  bool posts() const { return mode_ != P2pMode::kDataflow; }

  static auto name(const Value& value) {
    return std::tuple(value.value_kind, value.stage, value.microbatch, value.slice);
  }

  std::optional<Nanos> end_of(const Value& value) const {
    const auto found = made_.find(name(value));
    return found == made_.end() ? std::nullopt : std::optional(found->second);
  }

  /// When a message may be used by its receiver.
  std::optional<Nanos> usable(const MessageKey& key) const {
    const auto& known = posts() ? received_ : arrival_;
    const auto found = known.find(key);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  }

  /// When a rank that waits for a send continues.
  std::optional<Nanos> send_ends(const MessageKey& key) const {
    const auto& known = mode_ == P2pMode::kFifo ? posted_ : arrival_;
    const auto found = known.find(key);
    return found == known.end() ? std::nullopt : std::optional(found->second);
  }

  bool step(std::size_t rank, bool computes) {
    Queue& own = queue(rank, computes);
    if (own.at == lists_[rank].size()) return false;
    const Op& op = lists_[rank][own.at];
    const bool done = is_compute(op.kind)     ? !computes || compute(own, op)
                      : is_send(op.kind)      ? computes || send(own, op)
                      : is_recv(op.kind)      ? computes || receive(own, op)
                      : is_send_wait(op.kind) ? wait(own, op, rank, computes)
                                              : true;
    if (done) ++own.at;
    return done;
  }

  bool compute(Queue& own, const Op& op) {
    Nanos start = std::max(own.time, own.awaited);
    for (const Value& value : collect_needs(schedule_, op)) {
      const bool local = schedule_->rank_of(value.stage, value.microbatch) ==
                         schedule_->rank_of(op.stage, op.microbatch);
      const auto ready = local ? end_of(value)
                               : usable({value.stage, value.microbatch, value.slice,
                                         value.value_kind == ValueKind::kActivation});
      if (!ready) return false;
      start = std::max(start, *ready);
    }
    const StageCost& cost = costs_.stage_cost(op);
    const Nanos time = op.kind == OpKind::kForward     ? cost.forward
                       : op.kind == OpKind::kBackward  ? cost.backward
                       : op.kind == OpKind::kInputGrad ? cost.input_grad
                                                       : cost.weight_grad;
    spans_[name(op)] = {start, start + time};
    own.time = made_[name(value_of(op))] = start + time;
    own.awaited = 0;
    return true;
  }

  bool send(Queue& own, const Op& op) {
    const auto made = end_of(*find_carried_value(schedule_, op));
    if (!made) return false;
    const MessageKey key = key_of(schedule_, op);
    Nanos leaves = std::max(*made, own.awaited);
    if (posts()) leaves = std::max(leaves, own.time);
    if (mode_ == P2pMode::kRendezvous) {
      const auto ready = ready_.find(key);
      if (ready == ready_.end()) return false;
      leaves = std::max(leaves, ready->second);
    }
    held_[own_rank(op)].push_back({*made, +1});
    posted_[key] = leaves;
    arrival_[key] = leaves + costs_.message;
    own.time = leaves;
    own.awaited = 0;
    return true;
  }

  /// A receive is posted, and then blocks its queue.
  bool receive(Queue& own, const Op& op) {
    if (!posts()) return true;
    const MessageKey key = key_of(schedule_, op);
    ready_[key] = std::max(own.time, own.awaited);
    const auto arrived = arrival_.find(key);
    if (arrived == arrival_.end()) return false;
    own.time = received_[key] = std::max(ready_[key], arrived->second);
    own.awaited = 0;
    return true;
  }

  bool wait(Queue& own, const Op& op, std::size_t rank, bool computes) {
    const auto done = send_ends(key_of(schedule_, op));
    if (!done) return false;
    if (computes) held_[rank].push_back({std::max(own.time, *done), -1});
    own.awaited = std::max(own.awaited, *done);
    return true;
  }

  std::size_t own_rank(const Op& send) const {
    return static_cast<std::size_t>(schedule_->rank_of(send.stage, send.microbatch));
  }

  std::int64_t find_most(std::size_t rank) {
    auto& changes = held_[rank];
    // An output is there before its rank waits for an earlier one.
    std::sort(changes.begin(), changes.end(), [](const auto& left, const auto& right) {
      return std::pair(left.first, -left.second) < std::pair(right.first, -right.second);
    });
    std::int64_t now = 0;
    std::int64_t most = 0;
    for (const auto& [time, change] : changes) most = std::max(most, now += change);
    EXPECT_EQ(now, 0) << "an output is held for ever";
    return most;
  }

  const ValidSchedule& schedule_;
  const Lists& lists_;
  const CostModel& costs_;
  P2pMode mode_;
  std::vector<Queue> queues_;
  std::map<OpKey, std::pair<Nanos, Nanos>> spans_;
  std::map<std::tuple<ValueKind, std::int32_t, std::int32_t, std::int16_t>, Nanos> made_;
  std::map<MessageKey, Nanos> posted_, arrival_, ready_, received_;
  std::map<std::size_t, std::vector<std::pair<Nanos, int>>> held_;
};

}  // namespace

WalkedLists walk_lists(const ValidSchedule& schedule, const std::vector<RankOrder>& lists,
                       const CostModel& costs, P2pMode mode) {
  return ListInterpreter(schedule, lists, costs, mode).run();
}

}  // namespace bubblescope::tests
