// Walks down every rank's list once and inserts its receives in the order of all messages.
#include "sim/analysis/receive_order.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace bubblescope::inline sim {

namespace {

/// When a message leaves, and its producer: the order of all messages.
using Departure = std::pair<Nanos, InstructionId>;

class ReceiveOrder {
 public:
  ReceiveOrder(const Program& dataflow, const Timeline& timeline, ReceiveTiming timing)
      : dataflow_(dataflow), timeline_(timeline), timing_(timing) {}

  RankOrder run(const PostedSteps& steps) {
    collect_receives(steps);
    RankOrder list;
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const PostedStep& step = steps[at];
      if (is_recv(step.op.kind) || is_send_wait(step.op.kind)) continue;
      const std::size_t due =
          is_send(step.op.kind) ? count_before_send(step) : count_before_cell(steps, at);
      for (; next_ < due; ++next_) list.push_back(receives_[next_].op);
      list.push_back(step.op);
    }
    return list;
  }

 private:
  Departure departure(InstructionId message) const {
    return {timeline_.start[message], dataflow_.dependencies_of(message).front()};
  }

  void collect_receives(const PostedSteps& steps) {
    next_ = 0;
    receives_.clear();
    for (const PostedStep& step : steps)
      if (is_recv(step.op.kind)) receives_.push_back(step);
    std::sort(receives_.begin(), receives_.end(), [&](const PostedStep& a, const PostedStep& b) {
      return departure(a.id) < departure(b.id);
    });
  }

  /// The number of receives before a send: those whose messages leave earlier.
  std::size_t count_before_send(const PostedStep& send) const {
    std::size_t due = next_;
    while (due < receives_.size() && departure(receives_[due].id) < departure(send.id)) ++due;
    return due;
  }

  /// The number of receives before a compute op, or before the pair that it begins.
  std::size_t count_before_cell(const PostedSteps& steps, std::size_t at) const {
    if (steps[at].op.pairing == Pairing::kSecond) return next_;
    const std::size_t due = count_before_compute(steps[at].id);
    if (steps[at].op.pairing != Pairing::kFirst) return due;
    return std::max(due, count_before_compute(steps[at + 1].id));
  }

  std::size_t count_before_compute(InstructionId id) const {
    std::size_t due = next_;
    while (due < receives_.size() && may_be_posted(receives_[due].id, timeline_.start[id])) ++due;
    for (const InstructionId needed : dataflow_.dependencies_of(id)) {
      if (!is_message(dataflow_.instructions[needed])) continue;
      while (due < receives_.size() && departure(receives_[due].id) <= departure(needed)) ++due;
    }
    return due;
  }

  bool may_be_posted(InstructionId message, Nanos start) const {
    switch (timing_) {
      case ReceiveTiming::kLast: return false;
      case ReceiveTiming::kWhenLeft: return timeline_.start[message] <= start;
      case ReceiveTiming::kWhenArrived: return timeline_.end[message] <= start;
    }
    return false;
  }

  const Program& dataflow_;
  const Timeline& timeline_;
  ReceiveTiming timing_;
  PostedSteps receives_;  ///< of the current rank, in the order of departure
  std::size_t next_ = 0;  ///< the first one that is not posted yet
};

}  // namespace

std::vector<RankOrder> order_receives(const Program& dataflow, const Timeline& timeline,
                                      const std::vector<PostedSteps>& steps, ReceiveTiming timing) {
  ReceiveOrder order(dataflow, timeline, timing);
  std::vector<RankOrder> lists;
  for (const PostedSteps& rank_steps : steps) lists.push_back(order.run(rank_steps));
  return lists;
}

}  // namespace bubblescope::inline sim
