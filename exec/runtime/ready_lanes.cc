// Hands ready ops from the threads that release them to those that run them.
#include "exec/runtime/ready_lanes.h"

#include <utility>

#include "sim/engine/ready_units.h"

namespace bubblescope::exec {

ReadyLanes::ReadyLanes(const std::optional<ReadyPolicy>& policy, const Program& program)
    : program_(program) {
  if (!policy) return;
  tie_wait_ = policy->tie_wait;
  place_of_.assign(program.size(), 0);
  for (std::vector<ReadyUnit>& units : list_ready_units(program, policy->rules)) {
    for (std::size_t place = 0; place < units.size(); ++place)
      place_of_[units[place].first] = place_of_[units[place].last] = place;
    queues_.emplace_back(std::move(units), policy->rules.priority);
  }
  ready_ops_ = std::make_unique<ReadyOps[]>(queues_.size());
}

void ReadyLanes::rewind() {
  for (std::size_t lane = 0; lane < queues_.size(); ++lane) {
    queues_[lane].rewind();
    ready_ops_[lane].ids.clear();
  }
}

void ReadyLanes::add_ready_op(InstructionId id) {
  const std::uint32_t lane = program_.instructions[id].lane;
  if (!chooses(lane)) return;
  const std::lock_guard lock(ready_ops_[lane].mutex);
  ready_ops_[lane].ids.push_back(id);
}

ReadyQueue& ReadyLanes::update(std::uint32_t lane,
                               const std::function<Nanos(InstructionId)>& find_time) {
  std::vector<InstructionId> ids;
  {
    const std::lock_guard lock(ready_ops_[lane].mutex);
    ids.swap(ready_ops_[lane].ids);
  }
  for (const InstructionId id : ids) queues_[lane].add_ready_op(place_of_[id], find_time(id));
  return queues_[lane];
}

}  // namespace bubblescope::exec
