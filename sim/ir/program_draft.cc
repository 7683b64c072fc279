// Sorts a draft. Every lane advances as far as it can; a blocked lane is queued on the instruction
// that it waits for and advances again when that one is placed.
#include "sim/ir/program_draft.h"

#include <algorithm>
#include <utility>

#include "sim/ir/wait_cycle.h"

namespace bubblescope::inline sim {

namespace {

/// The instructions of every lane, in order.
struct LaneQueues {
  std::vector<std::uint32_t> begin;  ///< per lane, index into items; and the end
  std::vector<InstructionId> items;

  std::uint32_t size() const { return static_cast<std::uint32_t>(begin.size() - 1); }
};

LaneQueues collect_queues(const std::vector<Instruction>& instructions, std::size_t lanes,
                          const std::map<InstructionId, InstructionId>& behind) {
  LaneQueues queues;
  queues.begin.assign(lanes + 1, 0);
  for (const Instruction& instruction : instructions)
    if (instruction.lane != kNoLane) ++queues.begin[instruction.lane + 1];
  for (std::size_t lane = 0; lane < lanes; ++lane) queues.begin[lane + 1] += queues.begin[lane];
  queues.items.resize(queues.begin.back());
  std::vector<std::uint32_t> next(queues.begin.begin(), queues.begin.end() - 1);
  std::vector<bool> is_inserted(behind.empty() ? 0 : instructions.size(), false);
  for (const auto& [previous, inserted] : behind) is_inserted[inserted] = true;
  for (InstructionId id = 0; id < instructions.size(); ++id) {
    const std::uint32_t lane = instructions[id].lane;
    if (lane == kNoLane || (!behind.empty() && is_inserted[id])) continue;
    queues.items[next[lane]++] = id;
    for (auto at = behind.find(id); at != behind.end(); at = behind.find(at->second))
      queues.items[next[lane]++] = at->second;
  }
  return queues;
}

/// Runs a draft without a clock. Waiters are lanes, and instructions without a lane: waiter w is
/// lane w, or instruction w - lanes.
class Sorter {
 public:
  Sorter(const std::vector<Instruction>& instructions, LaneQueues queues,
         const std::vector<std::uint32_t>& dependency_begin,
         const std::vector<InstructionId>& dependencies)
      : instructions_(instructions),
        dependency_begin_(dependency_begin),
        dependencies_(dependencies),
        queues_(std::move(queues)),
        head_(queues_.begin.begin(), queues_.begin.end() - 1),
        checked_(queues_.size() + instructions.size(), 0),
        next_waiting_(queues_.size() + instructions.size(), kNoInstruction),
        first_waiting_(instructions.size(), kNoInstruction),
        place_(instructions.size(), kNoInstruction) {}

  void run() {
    sorted_.reserve(place_.size());
    for (InstructionId id = 0; id < instructions_.size(); ++id)
      if (instructions_[id].lane == kNoLane) start(queues_.size() + id);
    for (std::uint32_t lane = 0; lane < queues_.size(); ++lane) start(lane);
  }

  bool complete() const { return sorted_.size() == place_.size(); }
  const std::vector<InstructionId>& sorted() const { return sorted_; }
  InstructionId place(InstructionId draft_id) const { return place_[draft_id]; }

  /// The instructions of a cycle, each with the one it waits for, starting from a blocked lane.
  WaitCycle find_cycle() const {
    std::vector<bool> seen(instructions_.size(), false);
    InstructionId id = find_first_blocked();
    while (!seen[id]) {
      seen[id] = true;
      id = front_of(first_missing(id));
    }
    WaitCycle cycle;
    const InstructionId first = id;
    do {
      cycle.emplace_back(id, first_missing(id));
      id = front_of(first_missing(id));
    } while (id != first);
    return cycle;
  }

 private:
  void start(std::uint32_t first) {
    runnable_.push_back(first);
    while (!runnable_.empty()) {
      const std::uint32_t waiter = runnable_.back();
      runnable_.pop_back();
      if (waiter >= queues_.size())
        try_to_place(waiter - queues_.size(), waiter);
      else
        advance(waiter);
    }
  }

  void advance(std::uint32_t lane) {
    while (head_[lane] < queues_.begin[lane + 1] &&
           try_to_place(queues_.items[head_[lane]], lane)) {
      ++head_[lane];
      checked_[lane] = 0;
    }
  }

  /// Places an instruction and wakes its waiters, or queues `waiter` on the missing dependency.
  bool try_to_place(InstructionId id, std::uint32_t waiter) {
    const InstructionId missing = first_missing(id, checked_[waiter]);
    if (missing != kNoInstruction) {
      next_waiting_[waiter] = first_waiting_[missing];
      first_waiting_[missing] = waiter;
      return false;
    }
    place_[id] = static_cast<InstructionId>(sorted_.size());
    sorted_.push_back(id);
    for (std::uint32_t waiting = first_waiting_[id]; waiting != kNoInstruction;
         waiting = next_waiting_[waiting])
      runnable_.push_back(waiting);
    return true;
  }

  InstructionId first_missing(InstructionId id) const {
    std::uint32_t checked = 0;
    return first_missing(id, checked);
  }

  /// Skips the `checked` dependencies that are placed, and counts on.
  InstructionId first_missing(InstructionId id, std::uint32_t& checked) const {
    for (; dependency_begin_[id] + checked < dependency_begin_[id + 1]; ++checked) {
      const InstructionId awaited = dependencies_[dependency_begin_[id] + checked];
      if (place_[awaited] == kNoInstruction) return awaited;
    }
    return kNoInstruction;
  }

  InstructionId find_first_blocked() const {
    std::uint32_t lane = 0;
    while (head_[lane] == queues_.begin[lane + 1]) ++lane;
    return queues_.items[head_[lane]];
  }

  /// The instruction that blocks the lane of a missing one: itself if it has no lane.
  InstructionId front_of(InstructionId missing) const {
    const std::uint32_t lane = instructions_[missing].lane;
    return lane == kNoLane ? missing : queues_.items[head_[lane]];
  }

  const std::vector<Instruction>& instructions_;
  const std::vector<std::uint32_t>& dependency_begin_;
  const std::vector<InstructionId>& dependencies_;
  LaneQueues queues_;
  std::vector<std::uint32_t> head_;     ///< per lane, index into items
  std::vector<std::uint32_t> checked_;  ///< per waiter: dependencies of its head that are placed
  std::vector<std::uint32_t> next_waiting_;   ///< per waiter: the next one queued on the same id
  std::vector<std::uint32_t> first_waiting_;  ///< per instruction: the first waiter queued on it
  std::vector<InstructionId> place_;          ///< per instruction: its position in the sorted order
  std::vector<InstructionId> sorted_;
  std::vector<std::uint32_t> runnable_;
};

}  // namespace

ProgramDraft::ProgramDraft(std::int32_t ranks, std::size_t expected_instructions) : ranks_(ranks) {
  for (std::int32_t rank = 0; rank < ranks; ++rank) lanes_.push_back({rank, "compute"});
  instructions_.reserve(expected_instructions);
  dependency_begin_.reserve(expected_instructions + 1);
  dependencies_.reserve(2 * expected_instructions);
}

ProgramDraft::ProgramDraft(const Program& program)
    : ranks_(program.ranks),
      lanes_(program.lanes),
      instructions_(program.instructions),
      dependency_begin_(program.dependency_begin.begin(), program.dependency_begin.end() - 1),
      dependencies_(program.dependencies) {}

std::uint32_t ProgramDraft::add_lane(Lane lane) {
  lanes_.push_back(std::move(lane));
  return static_cast<std::uint32_t>(lanes_.size() - 1);
}

InstructionId ProgramDraft::add(const Instruction& instruction) {
  dependency_begin_.push_back(static_cast<std::uint32_t>(dependencies_.size()));
  instructions_.push_back(instruction);
  return size() - 1;
}

InstructionId ProgramDraft::add_after(InstructionId previous, const Instruction& instruction) {
  const InstructionId id = add(instruction);
  const auto next = behind_.find(previous);
  if (next != behind_.end()) behind_[id] = next->second;
  behind_[previous] = id;
  return id;
}

void ProgramDraft::merge_dependencies() {
  std::vector<std::uint32_t> begin(instructions_.size() + 1, 0);
  for (const auto& [waiter, awaited] : added_) ++begin[waiter + 1];
  for (InstructionId id = 0; id < size(); ++id)
    begin[id + 1] += begin[id] + dependency_begin_[id + 1] - dependency_begin_[id];
  std::vector<InstructionId> merged(begin.back());
  std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
  for (const auto& [waiter, awaited] : added_) merged[next[waiter]++] = awaited;
  for (InstructionId id = 0; id < size(); ++id)
    std::copy(dependencies_.begin() + dependency_begin_[id],
              dependencies_.begin() + dependency_begin_[id + 1], merged.begin() + next[id]);
  dependency_begin_ = std::move(begin);
  dependencies_ = std::move(merged);
}

std::variant<SortedDraft, Deadlock> ProgramDraft::sort() && {
  dependency_begin_.push_back(static_cast<std::uint32_t>(dependencies_.size()));
  if (!added_.empty()) merge_dependencies();
  Sorter sorter(instructions_, collect_queues(instructions_, lanes_.size(), behind_),
                dependency_begin_, dependencies_);
  sorter.run();
  if (!sorter.complete()) return make_deadlock(sorter.find_cycle(), instructions_);
  Program program;
  program.ranks = ranks_;
  program.lanes = std::move(lanes_);
  program.instructions.reserve(instructions_.size());
  program.dependency_begin.reserve(instructions_.size() + 1);
  program.dependencies.reserve(dependencies_.size());
  for (const InstructionId id : sorter.sorted()) {
    program.instructions.push_back(instructions_[id]);
    program.dependency_begin.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
    for (std::uint32_t at = dependency_begin_[id]; at < dependency_begin_[id + 1]; ++at)
      program.dependencies.push_back(sorter.place(dependencies_[at]));
  }
  program.dependency_begin.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
  return SortedDraft{std::move(program), sorter.sorted()};
}

std::variant<Program, Deadlock> ProgramDraft::finish() && {
  std::variant<SortedDraft, Deadlock> sorted = std::move(*this).sort();
  if (auto* const deadlock = std::get_if<Deadlock>(&sorted)) return std::move(*deadlock);
  return std::get<SortedDraft>(std::move(sorted)).program;
}

}  // namespace bubblescope::inline sim
