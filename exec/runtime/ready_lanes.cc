// Hands ready ops from the threads that release them to those that run them.
#include "exec/runtime/ready_lanes.h"

#include <utility>

#include "sim/engine/ready_units.h"

namespace bubblescope::exec {

namespace {

/// The units of a lane that wait for each of its units.
ReadyQueue::Followers find_followers(const Program& program, const std::vector<ReadyUnit>& units,
                                     const std::vector<std::size_t>& place_of) {
  ReadyQueue::Followers followers(units.size());
  for (std::size_t place = 0; place < units.size(); ++place)
    for (InstructionId id = units[place].first;; id = units[place].last) {
      for (const InstructionId dependency : program.dependencies_of(id))
        if (program.instructions[dependency].lane == program.instructions[id].lane &&
            place_of[dependency] != place)
          followers[place_of[dependency]].push_back(static_cast<std::uint32_t>(place));
      if (id == units[place].last) break;
    }
  return followers;
}

}  // namespace

ReadyLanes::ReadyLanes(const std::optional<ReadyPolicy>& policy, const Program& program)
    : program_(program) {
  if (!policy) return;
  tie_wait_ = policy->tie_wait;
  place_of_.assign(program.size(), 0);
  for (std::vector<ReadyUnit>& units : list_ready_units(program, policy->rules)) {
    for (std::size_t place = 0; place < units.size(); ++place)
      place_of_[units[place].first] = place_of_[units[place].last] = place;
    ReadyQueue::Followers followers;
    if (tie_wait_ > 0) followers = find_followers(program, units, place_of_);
    queues_.emplace_back(std::move(units), policy->rules.priority, std::move(followers));
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
