// Sorting a draft: every lane is advanced as far as it goes; a lane that must wait is hung on the
// instruction it waits for and is advanced again when that one is done.
#include "sim/ir/program_draft.h"

#include <algorithm>
#include <utility>

namespace bubblescope {

namespace {

constexpr std::uint32_t kNone = 0xffffffffu;

/// The instructions of a draft as queues: one per lane, and one for each instruction without lane.
struct Queues {
  std::vector<std::uint32_t> begin;  ///< per queue, index into items; and the end
  std::vector<InstructionId> items;

  std::uint32_t size() const { return static_cast<std::uint32_t>(begin.size() - 1); }
};

Queues queues_of(const std::vector<Instruction>& instructions, std::size_t lanes) {
  Queues queues;
  queues.begin.assign(lanes + 1, 0);
  std::size_t free_instructions = 0;
  for (const Instruction& instruction : instructions) {
    if (instruction.lane == kNoLane) ++free_instructions;
    else ++queues.begin[instruction.lane + 1];
  }
  for (std::size_t lane = 0; lane < lanes; ++lane) queues.begin[lane + 1] += queues.begin[lane];
  queues.items.resize(instructions.size());
  queues.begin.reserve(lanes + 1 + free_instructions);
  std::vector<std::uint32_t> next(queues.begin.begin(), queues.begin.end() - 1);
  std::uint32_t free_item = queues.begin.back();
  for (InstructionId id = 0; id < instructions.size(); ++id) {
    const std::uint32_t lane = instructions[id].lane;
    if (lane == kNoLane) {
      queues.items[free_item++] = id;
      queues.begin.push_back(free_item);
    } else {
      queues.items[next[lane]++] = id;
    }
  }
  return queues;
}

/// Runs the queues without a clock. `sorted` is the order in which instructions could start.
class Sorter {
 public:
  Sorter(const std::vector<Instruction>& instructions, std::size_t lanes,
         const std::vector<std::uint32_t>& dependency_begin,
         const std::vector<InstructionId>& dependencies)
      : dependency_begin_(dependency_begin),
        dependencies_(dependencies),
        queues_(queues_of(instructions, lanes)),
        head_(queues_.begin.begin(), queues_.begin.end() - 1),
        next_waiting_(queues_.size(), kNone),
        first_waiting_(instructions.size(), kNone),
        place_(instructions.size(), kNone) {}

  void run() {
    sorted_.reserve(place_.size());
    for (std::uint32_t queue = 0; queue < queues_.size(); ++queue) {
      runnable_.push_back(queue);
      while (!runnable_.empty()) {
        const std::uint32_t next = runnable_.back();
        runnable_.pop_back();
        advance(next);
      }
    }
  }

  bool complete() const { return sorted_.size() == place_.size(); }
  const std::vector<InstructionId>& sorted() const { return sorted_; }
  InstructionId place(InstructionId draft_id) const { return place_[draft_id]; }

  /// The queues of a cycle, by the instruction at which each stands.
  std::vector<std::pair<InstructionId, InstructionId>> find_cycle() const {
    std::vector<std::uint32_t> queue_of(place_.size());
    for (std::uint32_t queue = 0; queue < queues_.size(); ++queue)
      for (std::uint32_t at = queues_.begin[queue]; at < queues_.begin[queue + 1]; ++at)
        queue_of[queues_.items[at]] = queue;
    std::uint32_t queue = 0;
    while (head_[queue] == queues_.begin[queue + 1]) ++queue;
    std::vector<bool> seen(queues_.size(), false);
    for (; !seen[queue]; queue = queue_of[awaited(queue)]) seen[queue] = true;
    std::vector<std::pair<InstructionId, InstructionId>> cycle;
    const std::uint32_t first = queue;
    do {
      cycle.emplace_back(queues_.items[head_[queue]], awaited(queue));
      queue = queue_of[awaited(queue)];
    } while (queue != first);
    return cycle;
  }

 private:
  void advance(std::uint32_t queue) {
    while (head_[queue] < queues_.begin[queue + 1]) {
      const InstructionId id = queues_.items[head_[queue]];
      const InstructionId missing = first_missing(id);
      if (missing != kNone) {
        next_waiting_[queue] = first_waiting_[missing];
        first_waiting_[missing] = queue;
        return;
      }
      place_[id] = static_cast<InstructionId>(sorted_.size());
      sorted_.push_back(id);
      ++head_[queue];
      for (std::uint32_t woken = first_waiting_[id]; woken != kNone; woken = next_waiting_[woken])
        runnable_.push_back(woken);
    }
  }

  InstructionId first_missing(InstructionId id) const {
    for (std::uint32_t at = dependency_begin_[id]; at < dependency_begin_[id + 1]; ++at)
      if (place_[dependencies_[at]] == kNone) return dependencies_[at];
    return kNone;
  }

  InstructionId awaited(std::uint32_t queue) const {
    return first_missing(queues_.items[head_[queue]]);
  }

  const std::vector<std::uint32_t>& dependency_begin_;
  const std::vector<InstructionId>& dependencies_;
  Queues queues_;
  std::vector<std::uint32_t> head_;           ///< per queue, index into items
  std::vector<std::uint32_t> next_waiting_;   ///< per queue: the next one hung on the same id
  std::vector<std::uint32_t> first_waiting_;  ///< per instruction
  std::vector<InstructionId> place_;          ///< per instruction: its place in the sorted order
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

std::uint32_t ProgramDraft::add_lane(Lane lane) {
  lanes_.push_back(std::move(lane));
  return static_cast<std::uint32_t>(lanes_.size() - 1);
}

InstructionId ProgramDraft::add(const Instruction& instruction) {
  dependency_begin_.push_back(static_cast<std::uint32_t>(dependencies_.size()));
  instructions_.push_back(instruction);
  return size() - 1;
}

std::variant<Program, Deadlock> ProgramDraft::finish() && {
  dependency_begin_.push_back(static_cast<std::uint32_t>(dependencies_.size()));
  Sorter sorter(instructions_, lanes_.size(), dependency_begin_, dependencies_);
  sorter.run();
  if (!sorter.complete()) {
    Deadlock deadlock;
    for (const auto& [id, awaited] : sorter.find_cycle())
      deadlock.push_back({instructions_[id].rank, instructions_[id].op,
                          instructions_[awaited].rank, instructions_[awaited].op});
    return deadlock;
  }
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
  return program;
}

}  // namespace bubblescope
