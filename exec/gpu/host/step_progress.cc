// Polls the events of instructions.
#include "exec/gpu/host/step_progress.h"

#include <algorithm>
#include <numeric>

#include "exec/runtime/find_awaited.h"

namespace bubblescope::exec {

StepProgress::StepProgress(const GpuLanes& lanes, const Program& program)
    : lanes_(lanes),
      program_(program),
      ids_(program.size()),
      queues_(lanes.plan().streams.size()),
      enqueued_(queues_.size(), 0),
      ended_(queues_.size(), 0),
      state_(program.size(), State::kWaits) {
  const StreamPlan& plan = lanes.plan();
  std::iota(ids_.begin(), ids_.end(), InstructionId{0});
  std::sort(ids_.begin(), ids_.end(), [&](InstructionId left, InstructionId right) {
    return plan.place[left] < plan.place[right];
  });
  for (const InstructionId id : ids_) queues_[plan.stream_of[id]].push_back(id);
}

void StepProgress::reset() {
  std::fill(enqueued_.begin(), enqueued_.end(), 0);
  std::fill(ended_.begin(), ended_.end(), 0);
  std::fill(state_.begin(), state_.end(), State::kWaits);
}

void StepProgress::note_enqueued(InstructionId id) { ++enqueued_[lanes_.plan().stream_of[id]]; }

bool StepProgress::poll() {
  bool all = true;
  for (std::size_t stream = 0; stream < queues_.size(); ++stream) {
    std::size_t& ended = ended_[stream];
    while (ended < enqueued_[stream] && lanes_.has_ended(queues_[stream][ended])) ++ended;
    all = all && ended == enqueued_[stream];
  }
  return all;
}

std::size_t StepProgress::enqueued() const {
  return std::accumulate(enqueued_.begin(), enqueued_.end(), std::size_t{0});
}

std::size_t StepProgress::ended() const {
  return std::accumulate(ended_.begin(), ended_.end(), std::size_t{0});
}

std::vector<InstructionId> StepProgress::at_heads() const {
  std::vector<InstructionId> heads;
  for (std::size_t stream = 0; stream < queues_.size(); ++stream)
    if (ended_[stream] < enqueued_[stream]) heads.push_back(queues_[stream][ended_[stream]]);
  return heads;
}

void StepProgress::record_states() {
  poll();
  for (std::size_t stream = 0; stream < queues_.size(); ++stream)
    for (std::size_t at = 0; at < ended_[stream]; ++at) state_[queues_[stream][at]] = State::kEnded;
  for (const InstructionId id : at_heads())
    if (lanes_.has_started(id)) state_[id] = State::kRuns;
}

void StepProgress::record_completion() {
  for (const InstructionId id : ids_) state_[id] = State::kEnded;
}

std::vector<BlockedAt> StepProgress::find_blocked(std::int32_t rank) const {
  std::vector<BlockedAt> blocked;
  for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane) {
    if (program_.lanes[lane].rank != rank) continue;
    const auto& queue = queues_[lane];
    const auto first = std::find_if(queue.begin(), queue.end(),
                                    [&](InstructionId id) { return state_[id] != State::kEnded; });
    if (first != queue.end()) blocked.push_back(explain(*first));
  }
  return blocked;
}

BlockedAt StepProgress::explain(InstructionId id) const {
  BlockedAt blocked{id, state_[id] == State::kRuns, std::nullopt};
  if (blocked.started) return blocked;
  blocked.awaited = find_awaited(
      program_, id, [&](InstructionId dependency) { return state_[dependency] == State::kEnded; });
  return blocked;
}

}  // namespace bubblescope::exec
