// Every lane advances as far as it can; a blocked lane is retried when the lane that it waits for
// has advanced. The final blocked state does not depend on the order of lanes.
#include "sim/ir/posted_run.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "sim/ir/host_rules.h"
#include "sim/ir/queue_rules.h"
#include "sim/ir/wait_cycle.h"

namespace bubblescope::inline sim {

namespace {

using Part = PostedEvent::Part;

/// The first lanes are those of the dataflow Program; each rank's list is one more.
template <class Rules>
class PostedRun {
 public:
  PostedRun(const Program& dataflow, const std::vector<PostedSteps>& steps, Rules rules)
      : dataflow_(dataflow),
        steps_(steps),
        rules_(std::move(rules)),
        own_lanes_(static_cast<std::uint32_t>(dataflow.lanes.size())),
        begin_(own_lanes_ + 1, 0),
        compute_step_(steps.size(), 0),
        waiters_(own_lanes_ + steps.size()) {
    collect_lanes();
    for (std::uint32_t lane = 0; lane < own_lanes_; ++lane) find_step(lane);
  }

  std::optional<Deadlock> run() && {
    for (std::uint32_t lane = 0; lane < waiters_.size(); ++lane) runnable_.push_back(lane);
    while (!runnable_.empty()) {
      const std::uint32_t lane = runnable_.back();
      runnable_.pop_back();
      advance(lane);
    }
    for (std::uint32_t lane = 0; lane < waiters_.size(); ++lane)
      if (const auto blocked = front(lane)) return explain(*blocked);
    return std::nullopt;
  }

 private:
  void collect_lanes() {
    for (const Instruction& instruction : dataflow_.instructions)
      if (instruction.lane != kNoLane) ++begin_[instruction.lane + 1];
    for (std::uint32_t lane = 0; lane < own_lanes_; ++lane) begin_[lane + 1] += begin_[lane];
    items_.resize(begin_.back());
    head_.assign(begin_.begin(), begin_.end() - 1);
    for (InstructionId id = 0; id < dataflow_.size(); ++id) {
      const std::uint32_t lane = dataflow_.instructions[id].lane;
      if (lane != kNoLane) items_[head_[lane]++] = id;
    }
    head_.assign(begin_.begin(), begin_.end() - 1);
  }

  std::optional<PostedEvent> front(std::uint32_t lane) const {
    if (lane >= own_lanes_) return rules_.front(static_cast<std::int32_t>(lane - own_lanes_));
    if (head_[lane] == begin_[lane + 1]) return std::nullopt;
    return PostedEvent{items_[head_[lane]], Part::kOwn};
  }

  void advance(std::uint32_t lane) {
    bool moved = false;
    while (const auto event = front(lane)) {
      if (const auto missing = first_missing(*event)) {
        waiters_[find_blocking_lane(*missing)].push_back(lane);
        break;
      }
      pass(lane);
      moved = true;
    }
    if (!moved) return;
    runnable_.insert(runnable_.end(), waiters_[lane].begin(), waiters_[lane].end());
    waiters_[lane].clear();
  }

  void pass(std::uint32_t lane) {
    if (lane >= own_lanes_) return rules_.pass(static_cast<std::int32_t>(lane - own_lanes_));
    ++head_[lane];
    find_step(lane);
  }

  /// Finds the list position of the compute op that a lane has reached. Lists contain the compute
  /// ops of the order, in its order.
  void find_step(std::uint32_t lane) {
    const auto event = front(lane);
    if (!event || !is_compute(dataflow_.instructions[event->id].op.kind)) return;
    const auto rank = static_cast<std::size_t>(dataflow_.instructions[event->id].rank);
    const PostedSteps& list = steps_[rank];
    std::size_t& at = compute_step_[rank];
    while (!is_compute(list[at].op.kind) || list[at].id != event->id) ++at;
  }

  template <class Visit>
  void for_each_awaited(PostedEvent event, const Visit& visit) const {
    const auto rank = static_cast<std::size_t>(dataflow_.instructions[event.id].rank);
    rules_.for_each_awaited(event, compute_step_[rank], visit);
  }

  std::optional<PostedEvent> first_missing(PostedEvent event) const {
    std::optional<PostedEvent> missing;
    for_each_awaited(event, [&](PostedEvent awaited) {
      if (!missing && !is_done(awaited)) missing = awaited;
    });
    return missing;
  }

  /// An instruction without a lane is done when all of its dependencies are. Ids increase along a
  /// lane.
  bool is_done(PostedEvent event) const {
    if (event.part != Part::kOwn) return rules_.is_done(event);
    const std::uint32_t lane = dataflow_.instructions[event.id].lane;
    if (lane == kNoLane) return !first_missing(event);
    return head_[lane] == begin_[lane + 1] || event.id < items_[head_[lane]];
  }

  std::uint32_t lane_of(PostedEvent event) const {
    const Instruction& instruction = dataflow_.instructions[event.id];
    if (event.part == Part::kOwn) return instruction.lane;
    return own_lanes_ +
           static_cast<std::uint32_t>(event.is_at_sender() ? instruction.rank : instruction.peer);
  }

  /// The lane that must advance before a missing event can happen.
  std::uint32_t find_blocking_lane(PostedEvent missing) const {
    while (lane_of(missing) == kNoLane) missing = *first_missing(missing);
    return lane_of(missing);
  }

  /// The event that the lane of a missing event has reached: itself if it has no lane.
  PostedEvent front_of(PostedEvent missing) const {
    const std::uint32_t lane = lane_of(missing);
    return lane == kNoLane ? missing : *front(lane);
  }

  /// The cycle that ProgramDraft::finish() would find from the same lane.
  Deadlock explain(PostedEvent event) const {
    std::set<PostedEvent> seen;
    while (seen.insert(event).second) event = front_of(awaited_by(event));
    std::map<PostedEvent, InstructionId> ids;
    std::vector<Instruction> reported;
    const auto id_of = [&](PostedEvent named) {
      const auto [known, added] = ids.emplace(named, static_cast<InstructionId>(reported.size()));
      if (added) reported.push_back(instruction_of(named));
      return known->second;
    };
    WaitCycle cycle;
    const PostedEvent first = event;
    do {
      const PostedEvent awaited = awaited_by(event);
      const InstructionId blocked = id_of(event);
      cycle.emplace_back(blocked, id_of(awaited));
      event = front_of(awaited);
    } while (event != first);
    return make_deadlock(cycle, reported);
  }

  PostedEvent awaited_by(PostedEvent blocked) const {
    return rules_.event_to_report(blocked, *first_missing(blocked));
  }

  Instruction instruction_of(PostedEvent event) const {
    if (event.part == Part::kOwn) return dataflow_.instructions[event.id];
    const std::uint32_t lane = lane_of(event);
    const PostedSteps& list = steps_[lane - own_lanes_];
    const auto step = std::find_if(list.begin(), list.end(), [&](const PostedStep& posted) {
      return posted.id == event.id && is_message(posted.op.kind);
    });
    return make_message_end(*step, dataflow_, lane, event.is_post() ? Role::kPost : Role::kWait);
  }

  const Program& dataflow_;
  const std::vector<PostedSteps>& steps_;
  Rules rules_;
  std::uint32_t own_lanes_;
  std::vector<std::uint32_t> begin_;  ///< [dataflow lane]: index into items; and the end
  std::vector<InstructionId> items_;  ///< of every dataflow lane, in order
  std::vector<std::uint32_t> head_;   ///< [dataflow lane]: index into items
  /// [rank]: the list position of the compute op at its head.
  std::vector<std::size_t> compute_step_;
  std::vector<std::vector<std::uint32_t>> waiters_;  ///< [lane]: lanes to retry
  std::vector<std::uint32_t> runnable_;
};

std::optional<Deadlock> run_queues(const Program& dataflow, const std::vector<PostedSteps>& steps,
                                   Slots slots) {
  return PostedRun(dataflow, steps, QueueRules(dataflow, steps, slots)).run();
}

}  // namespace

std::optional<Deadlock> find_message_deadlock(const Program& dataflow,
                                              const std::vector<PostedSteps>& steps,
                                              const LowerOptions& options) {
  switch (options.mode) {
    case P2pMode::kDataflow: return std::nullopt;
    case P2pMode::kFifo: return run_queues(dataflow, steps, std::nullopt);
    case P2pMode::kEager: return run_queues(dataflow, steps, options.eager_slots);
    case P2pMode::kRendezvous: return run_queues(dataflow, steps, 0);
    case P2pMode::kHostRendezvous:
    case P2pMode::kHostSend:
    case P2pMode::kBatched:
      return PostedRun(dataflow, steps, HostRules(dataflow, steps, options.mode)).run();
  }
  return std::nullopt;
}

}  // namespace bubblescope::inline sim
