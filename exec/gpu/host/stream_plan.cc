// Turns lanes and dependencies into streams and event waits.
#include "exec/gpu/host/stream_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/engine/simulate.h"

namespace bubblescope::exec {

namespace {

/// Adds a link's stream at the first message on that link.
class LinkStreams {
 public:
  explicit LinkStreams(StreamPlan& plan) : plan_(plan) {}

  std::uint32_t find(const Instruction& message) {
    const auto [at, is_new] = known_.try_emplace({message.rank, message.peer}, next());
    if (is_new)
      plan_.streams.push_back(
          {message.rank, std::to_string(message.rank) + ">" + std::to_string(message.peer), false});
    return at->second;
  }

 private:
  std::uint32_t next() const { return static_cast<std::uint32_t>(plan_.streams.size()); }

  StreamPlan& plan_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> known_;
};

/// Instructions by their start in a step in which a backward takes twice as long as anything else.
/// Dependencies come first: an instruction starts no earlier, and has a higher number. The part of
/// one rank (exec/nccl/rank_plan.h) keeps its order, in which all processes agree.
std::vector<InstructionId> sort_by_start(const Program& program) {
  std::vector<InstructionId> sorted(program.size());
  std::iota(sorted.begin(), sorted.end(), InstructionId{0});
  if (program.ranks == 1) return sorted;
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions) {
    const OpKind kind = instruction.op.kind;
    durations.push_back(!is_compute(kind) ? 0 : kind == OpKind::kBackward ? 2 : 1);
  }
  const Timeline timeline = simulate(program, durations);
  std::sort(sorted.begin(), sorted.end(), [&](InstructionId left, InstructionId right) {
    return std::tuple(timeline.start[left], left) < std::tuple(timeline.start[right], right);
  });
  return sorted;
}

/// [instruction]: the instructions without a lane whose last dependency in this order it is.
std::vector<std::vector<InstructionId>> find_followers(const Program& program,
                                                       const std::vector<InstructionId>& order) {
  std::vector<std::size_t> at(program.size());
  for (std::size_t place = 0; place < order.size(); ++place) at[order[place]] = place;
  std::vector<std::vector<InstructionId>> followers(program.size());
  for (const InstructionId id : order) {
    const auto dependencies = program.dependencies_of(id);
    if (program.instructions[id].lane != kNoLane || dependencies.empty()) continue;
    const auto last = std::max_element(
        dependencies.begin(), dependencies.end(),
        [&](InstructionId left, InstructionId right) { return at[left] < at[right]; });
    followers[*last].push_back(id);
  }
  return followers;
}

/// A message depends on its producer, and may depend on the posts at its two ends; it follows the
/// last of them.
void set_order(StreamPlan& plan, const Program& program) {
  const std::vector<InstructionId> order = sort_by_start(program);
  const std::vector<std::vector<InstructionId>> followers = find_followers(program, order);
  std::vector<bool> is_placed(program.size(), false);
  plan.place.resize(program.size());
  for (const InstructionId id : order) {
    std::vector<InstructionId> next{id};
    while (!next.empty()) {
      const InstructionId at = next.back();
      next.pop_back();
      if (is_placed[at]) continue;
      is_placed[at] = true;
      plan.place[at] = static_cast<std::uint32_t>(plan.order.size());
      plan.order.push_back(at);
      next.insert(next.end(), followers[at].rbegin(), followers[at].rend());
    }
  }
}

/// Adds a wait for an instruction. A wait for the last instruction of a stream covers all before
/// it.
void add_wait(StreamPlan& plan, InstructionId id) {
  const auto begin = plan.waits.begin() + plan.wait_begin.back();
  const auto same = std::find_if(begin, plan.waits.end(), [&](InstructionId other) {
    return plan.stream_of[other] == plan.stream_of[id];
  });
  if (same == plan.waits.end())
    plan.waits.push_back(id);
  else if (plan.place[*same] < plan.place[id])
    *same = id;
}

}  // namespace

StreamPlan plan_streams(const Program& program) {
  StreamPlan plan;
  for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
    const auto& [rank, name] = program.lanes[lane];
    const bool adds_up = name == "collective";
    plan.streams.push_back({rank, name, adds_up || lane < static_cast<std::size_t>(program.ranks)});
  }
  set_order(plan, program);
  LinkStreams links(plan);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const bool in_lane = instruction.lane != kNoLane;
    plan.stream_of.push_back(in_lane ? instruction.lane : links.find(instruction));
    plan.wait_begin.push_back(static_cast<std::uint32_t>(plan.waits.size()));
    for (const InstructionId dependency : program.dependencies_of(id))
      if (plan.stream_of[dependency] != plan.stream_of[id]) add_wait(plan, dependency);
  }
  plan.wait_begin.push_back(static_cast<std::uint32_t>(plan.waits.size()));
  return plan;
}

}  // namespace bubblescope::exec
