// Runs a Program in time order and lets free ranks choose.
#include "sim/engine/ready_run.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <utility>

namespace bubblescope::inline sim {

namespace {

bool computes(const Program& program, InstructionId id) {
  return program.instructions[id].lane < static_cast<std::uint32_t>(program.ranks);
}

}  // namespace

ReadySimulator::ReadySimulator(const Program& program, const ReadyRules& rules)
    : program_(program),
      units_(list_ready_units(program, rules)),
      unit_of_(program.size(), 0),
      awaited_(program.size(), 0) {
  for (const std::vector<ReadyUnit>& units : units_) choices_.emplace_back(units, rules.priority);
  number_units();
  add_waiters();
}

void ReadySimulator::number_units() {
  for (const std::vector<ReadyUnit>& units : units_)
    for (std::uint32_t at = 0; at < units.size(); ++at)
      unit_of_[units[at].first] = unit_of_[units[at].last] = at;
}

/// In compute lanes only what keeps its place waits for the ops before it.
void ReadySimulator::add_edges_of_lanes(Edges& edges) const {
  for (const std::vector<ReadyUnit>& units : units_) {
    std::vector<InstructionId> before;
    for (const ReadyUnit& unit : units) {
      if (unit.keeps_place)
        for (const InstructionId awaited : std::exchange(before, {}))
          edges.emplace_back(awaited, unit.first);
      before.push_back(unit.last);
    }
  }
  std::vector<InstructionId> last_in_lane(program_.lanes.size(), kNoInstruction);
  for (InstructionId id = 0; id < program_.size(); ++id) {
    const std::uint32_t lane = program_.instructions[id].lane;
    if (lane == kNoLane || computes(program_, id)) continue;
    const InstructionId last = std::exchange(last_in_lane[lane], id);
    if (last != kNoInstruction) edges.emplace_back(last, id);
  }
}

/// A pair's second half counts as its first, so that the pair waits for the inputs of both.
void ReadySimulator::add_waiters() {
  Edges edges;
  add_edges_of_lanes(edges);
  for (InstructionId id = 0; id < program_.size(); ++id) {
    const Instruction& instruction = program_.instructions[id];
    InstructionId waiter = id;
    if (computes(program_, id))
      waiter = units_[static_cast<std::size_t>(instruction.rank)][unit_of_[id]].first;
    for (const InstructionId awaited : program_.dependencies_of(id))
      if (awaited != waiter) edges.emplace_back(awaited, waiter);
  }
  waiter_begin_.assign(program_.size() + std::size_t{1}, 0);
  for (const auto& [awaited, waiter] : edges) {
    ++waiter_begin_[awaited + 1];
    ++awaited_[waiter];
  }
  for (InstructionId id = 0; id < program_.size(); ++id) waiter_begin_[id + 1] += waiter_begin_[id];
  waiters_.resize(edges.size());
  std::vector<std::uint32_t> next(waiter_begin_.begin(), waiter_begin_.end() - 1);
  for (const auto& [awaited, waiter] : edges) waiters_[next[awaited]++] = waiter;
}

/// One run.
class ReadyLoop {
 public:
  ReadyLoop(const ReadySimulator& simulator, std::span<const Nanos> durations,
            std::span<const Nanos> gaps)
      : simulator_(simulator),
        program_(simulator.program_),
        durations_(durations),
        gaps_(gaps),
        op_gap_(gaps.empty() ? 0 : *std::max_element(gaps.begin(), gaps.end())),
        awaited_(simulator.awaited_),
        ready_(simulator.choices_),
        busy_(simulator.units_.size(), false) {
    run_.timeline.source = "simulated";
    run_.timeline.start.assign(program_.size(), 0);
    run_.timeline.end.assign(program_.size(), 0);
    run_.order.resize(simulator.units_.size());
    for (const std::vector<ReadyUnit>& units : simulator.units_) memory_.push_back(bound_of(units));
  }

  ReadyRun run() && {
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (awaited_[id] == 0 && !is_second_half(id)) become_ready(id);
    choose();
    while (!ends_.empty()) {
      now_ = ends_.top().first;
      while (!ends_.empty() && ends_.top().first == now_) {
        const InstructionId id = ends_.top().second;
        ends_.pop();
        if (id < program_.size())
          end(id);
        else
          become_free(id - program_.size());
      }
      choose();
    }
    return std::move(run_);
  }

 private:
  const ReadyUnit& unit_of(InstructionId id) const {
    const auto rank = static_cast<std::size_t>(program_.instructions[id].rank);
    return simulator_.units_[rank][simulator_.unit_of_[id]];
  }

  bool is_second_half(InstructionId id) const {
    return computes(program_, id) && unit_of(id).first != id;
  }

  void become_ready(InstructionId id) {
    if (!computes(program_, id)) return start(id, now_);
    const auto rank = static_cast<std::size_t>(program_.instructions[id].rank);
    ready_[rank].add(simulator_.unit_of_[id]);
    touched_.insert(rank);
  }

  void start(InstructionId id, Nanos time) {
    run_.timeline.start[id] = time;
    run_.timeline.end[id] = time + durations_[id];
    ends_.emplace(run_.timeline.end[id], id);
  }

  void end(InstructionId id) {
    if (computes(program_, id) && unit_of(id).last == id) {
      const auto rank = static_cast<std::uint32_t>(program_.instructions[id].rank);
      if (op_gap_ == 0)
        become_free(rank);
      else
        ends_.emplace(now_ + op_gap_, program_.size() + rank);
    }
    for (std::uint32_t at = simulator_.waiter_begin_[id]; at < simulator_.waiter_begin_[id + 1];
         ++at)
      if (--awaited_[simulator_.waiters_[at]] == 0) become_ready(simulator_.waiters_[at]);
  }

  void become_free(std::size_t rank) {
    busy_[rank] = false;
    touched_.insert(rank);
  }

  void choose() {
    for (const std::size_t rank : std::exchange(touched_, {})) {
      if (busy_[rank]) continue;
      const std::optional<std::uint32_t> best = ready_[rank].find(memory_[rank]);
      if (!best) continue;
      const ReadyUnit& unit = simulator_.units_[rank][*best];
      memory_[rank].take(*best);
      ready_[rank].remove(*best);
      busy_[rank] = true;
      run_.order[rank].push_back(unit.first);
      start(unit.first, now_);
      if (unit.last == unit.first) continue;
      run_.order[rank].push_back(unit.last);
      start(unit.last, run_.timeline.end[unit.first] + (gaps_.empty() ? 0 : gaps_[unit.last]));
    }
  }

  const ReadySimulator& simulator_;
  const Program& program_;
  std::span<const Nanos> durations_;
  std::span<const Nanos> gaps_;
  Nanos op_gap_;
  std::vector<std::uint32_t> awaited_;
  std::vector<ReadyChoices> ready_;  ///< [rank]
  std::vector<bool> busy_;           ///< [rank]
  std::vector<MemoryBound> memory_;  ///< [rank]
  std::set<std::size_t> touched_;    ///< ranks that may have a choice to make
  /// The ends of instructions and, numbered after all of them, the ends of ranks' gaps.
  std::priority_queue<std::pair<Nanos, InstructionId>, std::vector<std::pair<Nanos, InstructionId>>,
                      std::greater<>>
      ends_;
  Nanos now_ = 0;
  ReadyRun run_;
};

ReadyRun ReadySimulator::run(std::span<const Nanos> durations, std::span<const Nanos> gaps) const {
  return ReadyLoop(*this, durations, gaps).run();
}

std::vector<Nanos> find_remaining_paths(const Program& program, std::span<const Nanos> durations) {
  std::vector<Nanos> path(program.size(), 0);
  /// [rank]: the path from the second half of the pair whose first half comes next.
  std::vector<Nanos> second_half(static_cast<std::size_t>(program.ranks), 0);
  for (InstructionId id = program.size(); id-- > 0;) {
    const Instruction& instruction = program.instructions[id];
    if (computes(program, id) && instruction.op.pairing == Pairing::kFirst)
      path[id] = std::max(path[id], second_half[instruction.lane]);
    path[id] += durations[id];
    if (computes(program, id)) second_half[instruction.lane] = path[id];
    for (const InstructionId awaited : program.dependencies_of(id))
      path[awaited] = std::max(path[awaited], path[id]);
  }
  return path;
}

}  // namespace bubblescope::inline sim
