// Uses a clock for flows and contended ops only; everything else follows from dependencies.
#include "sim/engine/simulate_shared.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace bubblescope::inline sim {

namespace {

constexpr std::uint32_t kNoTask = 0xffffffffu;

/// The start of a flow or a contended op, or its end, which is valid only if its rate has not
/// changed since `version`.
struct Event {
  Nanos time = 0;
  std::uint32_t task = 0;
  std::uint32_t version = 0;  ///< 0: the start

  bool operator>(const Event& other) const {
    return std::tie(time, task, version) > std::tie(other.time, other.task, other.version);
  }
};

}  // namespace

/// One run. An instruction is timed as soon as the ends of all its dependencies are known. So at
/// every moment all tasks that can begin by then are known, and no event comes too late.
class SharedLoop {
 public:
  SharedLoop(const SharedSimulator& simulator, std::span<const Nanos> fixed)
      : simulator_(simulator),
        program_(simulator.program_),
        fixed_(fixed),
        flows_(static_cast<std::uint32_t>(simulator.traffic_.flows.size())),
        shares_(simulator.traffic_),
        contention_(simulator.traffic_),
        awaited_(simulator.awaited_),
        version_(simulator.traffic_.flows.size() + simulator.traffic_.contended_ops.size(), 0) {
    run_.timeline.start.assign(program_.size(), 0);
    run_.timeline.end.assign(program_.size(), 0);
    run_.timeline.gaps.assign(simulator.gaps_.begin(), simulator.gaps_.end());
  }

  SimulatedRun run() && {
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (simulator_.awaited_[id] == 0) start(id);
    release_dependents();
    while (!events_.empty()) {
      const Nanos now = events_.top().time;
      while (!events_.empty() && events_.top().time == now) {
        const Event event = events_.top();
        events_.pop();
        advance(event);
      }
      for (const FlowId flow : shares_.settle(now))
        events_.push({shares_.end_of(flow), flow, ++version_[flow]});
      for (const ContendedOpId op : contention_.settle(now))
        events_.push({contention_.end_of(op), flows_ + op, ++version_[flows_ + op]});
    }
    run_.uses = shares_.uses();
    return std::move(run_);
  }

 private:
  void advance(const Event& event) {
    const Traffic& traffic = simulator_.traffic_;
    const bool flows = event.task < flows_;
    const InstructionId id = flows ? traffic.flows[event.task].instruction
                                   : traffic.contended_ops[event.task - flows_].instruction;
    if (event.version == 0)
      return flows ? shares_.begin(event.task, event.time)
                   : contention_.begin(event.task - flows_, fixed_[id], event.time);
    if (event.version != version_[event.task]) return;
    flows ? shares_.end(event.task, event.time) : contention_.end(event.task - flows_);
    end(id, event.time);
    release_dependents();
  }

  /// Called when its start is known: the latest end of all its dependencies.
  void start(InstructionId id) {
    const Nanos begin = run_.timeline.start[id];
    const std::uint32_t task = simulator_.task_of_[id];
    if (task == kNoTask)
      end(id, begin + fixed_[id]);
    else
      events_.push({task < flows_ ? begin + fixed_[id] : begin, task, 0});
  }

  void end(InstructionId id, Nanos time) {
    run_.timeline.end[id] = time;
    ended_.push_back(id);
  }

  void release_dependents() {
    while (!ended_.empty()) {
      const InstructionId id = ended_.back();
      ended_.pop_back();
      const Nanos time = run_.timeline.end[id];
      if (const InstructionId next = simulator_.next_in_lane_[id]; next != kNoInstruction)
        release(next, time + simulator_.gap_of(next));
      for (std::uint32_t at = simulator_.waiter_begin_[id]; at < simulator_.waiter_begin_[id + 1];
           ++at)
        release(simulator_.waiters_[at], time);
    }
  }

  void release(InstructionId id, Nanos time) {
    run_.timeline.start[id] = std::max(run_.timeline.start[id], time);
    if (--awaited_[id] == 0) start(id);
  }

  const SharedSimulator& simulator_;
  const Program& program_;
  std::span<const Nanos> fixed_;
  std::uint32_t flows_;
  FairShare shares_;
  ContentionTracker contention_;
  std::vector<std::uint32_t> awaited_;
  std::vector<std::uint32_t> version_;  ///< per task: how often its rate has changed
  std::vector<InstructionId> ended_;    ///< their dependents are not released yet
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  SimulatedRun run_;
};

SharedSimulator::SharedSimulator(const Program& program, const Traffic& traffic,
                                 std::span<const Nanos> gaps)
    : program_(program),
      traffic_(traffic),
      gaps_(gaps),
      awaited_(program.size(), 0),
      next_in_lane_(program.size(), kNoInstruction),
      waiter_begin_(program.size() + std::size_t{1}, 0),
      waiters_(program.dependencies.size()),
      task_of_(program.size(), kNoTask) {
  std::vector<InstructionId> last_in_lane(program.lanes.size(), kNoInstruction);
  for (InstructionId id = 0; id < program.size(); ++id) {
    awaited_[id] = static_cast<std::uint32_t>(program.dependencies_of(id).size());
    for (const InstructionId awaited : program.dependencies_of(id)) ++waiter_begin_[awaited + 1];
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane == kNoLane) continue;
    if (last_in_lane[lane] != kNoInstruction) {
      next_in_lane_[last_in_lane[lane]] = id;
      ++awaited_[id];
    }
    last_in_lane[lane] = id;
  }
  for (InstructionId id = 0; id < program.size(); ++id) waiter_begin_[id + 1] += waiter_begin_[id];
  std::vector<std::uint32_t> next(waiter_begin_.begin(), waiter_begin_.end() - 1);
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId awaited : program.dependencies_of(id)) waiters_[next[awaited]++] = id;
  for (FlowId flow = 0; flow < traffic.flows.size(); ++flow)
    task_of_[traffic.flows[flow].instruction] = flow;
  const auto flows = static_cast<std::uint32_t>(traffic.flows.size());
  for (ContendedOpId op = 0; op < traffic.contended_ops.size(); ++op)
    task_of_[traffic.contended_ops[op].instruction] = flows + op;
}

SimulatedRun SharedSimulator::run(std::span<const Nanos> fixed) const {
  return SharedLoop(*this, fixed).run();
}

SimulatedRun simulate_shared(const Program& program, const Traffic& traffic,
                             std::span<const Nanos> gaps) {
  return SharedSimulator(program, traffic, gaps).run(traffic.fixed);
}

}  // namespace bubblescope::inline sim
