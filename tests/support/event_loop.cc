// Events in time order.
#include "tests/support/event_loop.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace bubblescope::tests {

namespace {

/// Runs a Program by the clock: at every end, starts the instructions that can start.
class EventLoop {
 public:
  EventLoop(const Program& program, const std::vector<Nanos>& durations)
      : program_(program), durations_(durations), queues_(program.lanes.size()) {
    for (InstructionId id = 0; id < program.size(); ++id)
      if (program.instructions[id].lane != kNoLane) queues_[program.instructions[id].lane].push(id);
    busy_.resize(queues_.size(), false);
    started_.resize(program.size(), false);
    ended_.resize(program.size(), false);
    timeline_.start.resize(program.size());
    timeline_.end.resize(program.size());
  }

  Timeline run() {
    start_all(0);
    while (!ends_.empty()) {
      const Nanos now = ends_.top().first;
      while (!ends_.empty() && ends_.top().first == now) {
        end(ends_.top().second);
        ends_.pop();
      }
      start_all(now);
    }
    return timeline_;
  }

 private:
  void end(InstructionId id) {
    ended_[id] = true;
    if (program_.instructions[id].lane != kNoLane) busy_[program_.instructions[id].lane] = false;
  }

  bool is_ready(InstructionId id) const {
    const auto dependencies = program_.dependencies_of(id);
    return std::all_of(dependencies.begin(), dependencies.end(),
                       [&](InstructionId dependency) { return ended_[dependency]; });
  }

  void start(InstructionId id, Nanos now) {
    started_[id] = true;
    timeline_.start[id] = now;
    timeline_.end[id] = now + durations_[id];
    ends_.emplace(timeline_.end[id], id);
  }

  void start_all(Nanos now) {
    for (std::size_t lane = 0; lane < queues_.size(); ++lane)
      if (!busy_[lane] && !queues_[lane].empty() && is_ready(queues_[lane].front())) {
        busy_[lane] = true;
        start(queues_[lane].front(), now);
        queues_[lane].pop();
      }
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (program_.instructions[id].lane == kNoLane && !started_[id] && is_ready(id))
        start(id, now);
  }

  using End = std::pair<Nanos, InstructionId>;

  const Program& program_;
  const std::vector<Nanos>& durations_;
  std::vector<std::queue<InstructionId>> queues_;
  std::vector<bool> busy_;
  std::vector<bool> started_;
  std::vector<bool> ended_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Timeline timeline_;
};

}  // namespace

Timeline run_by_the_clock(const Program& program, const std::vector<Nanos>& durations) {
  return EventLoop(program, durations).run();
}

}  // namespace bubblescope::tests
