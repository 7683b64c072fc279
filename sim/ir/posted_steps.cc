// Tables from each value to its producer and to the message that carries it.
#include "sim/ir/posted_steps.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

class StepSearch {
 public:
  StepSearch(const Schedule& schedule, const Program& dataflow)
      : schedule_(schedule),
        dataflow_(dataflow),
        index_(schedule),
        producer_(index_.size(), kNoInstruction),
        message_(index_.size(), kNoInstruction),
        posted_ends_(dataflow.size(), 0) {
    if (!schedule.graph.is_chain()) sent_.assign(index_.size(), 0);
    for (InstructionId id = 0; id < dataflow.size(); ++id) {
      const Instruction& instruction = dataflow.instructions[id];
      if (is_compute(instruction.op.kind))
        producer_[index_(instruction.op)] = id;
      else if (is_message(instruction))
        add_message(id);
    }
  }

  PostedSteps find(std::int32_t rank, const RankOrder& posted) {
    PostedSteps steps;
    steps.reserve(posted.size());
    for (const Op& op : posted) {
      if (is_compute(op.kind))
        steps.push_back({op, find_compute(rank, op)});
      else if (is_message(op.kind))
        steps.push_back({op, find_posted_end(rank, op)});
      else if (is_send_wait(op.kind))
        steps.push_back({op, find_message(rank, op)});
    }
    return steps;
  }

  void expect_both_ends() const {
    for (InstructionId id = 0; id < dataflow_.size(); ++id) {
      const Instruction& message = dataflow_.instructions[id];
      if (!is_message(message) || posted_ends_[id] == 2) continue;
      throw Error(Fault::kProblem, "rank " + std::to_string(message.rank) + " and rank " +
                                       std::to_string(message.peer) + " must both post " +
                                       to_string(message.op) + " and its RECV, once; add it");
    }
  }

 private:
  void add_message(InstructionId id) {
    const std::size_t value = index_(*find_carried_value(schedule_, dataflow_.instructions[id].op));
    if (message_[value] == kNoInstruction)
      message_[value] = id;
    else
      others_[value].push_back(id);
  }

  InstructionId find_compute(std::int32_t rank, const Op& op) const {
    const InstructionId id = producer_[index_(op)];
    if (id == kNoInstruction)
      throw Error(Fault::kProblem, "rank " + std::to_string(rank) + " posts " + to_string(op) +
                                       ", which is not in its order; remove it");
    return id;
  }

  InstructionId find_posted_end(std::int32_t rank, const Op& op) {
    const InstructionId id = find_message(rank, op);
    ++posted_ends_[id];
    return id;
  }

  InstructionId find_message(std::int32_t rank, const Op& op) {
    const std::optional<Value> value = find_carried_value(schedule_, op);
    const InstructionId id = value ? find_message_of(*value, rank, op) : kNoInstruction;
    if (id == kNoInstruction)
      throw Error(Fault::kProblem, "rank " + std::to_string(rank) + " posts " + to_string(op) +
                                       ", but no such message is needed; remove it");
    return id;
  }

  /// In a stage graph a value may go to several ranks: its first SEND to the first, and so on.
  InstructionId find_message_of(const Value& value, std::int32_t rank, const Op& op) {
    const std::size_t at = index_(value);
    if (sent_.empty()) return message_[at];
    const std::vector<std::int32_t> receivers = receiving_ranks(schedule_, value);
    const auto number = static_cast<std::size_t>(is_send(op.kind) ? sent_[at]++ : 0);
    if (number >= receivers.size()) return kNoInstruction;
    const std::int32_t peer = is_send(op.kind) ? receivers[number] : rank;
    const auto is_there = [&](InstructionId id) {
      return id != kNoInstruction && dataflow_.instructions[id].peer == peer;
    };
    if (is_there(message_[at])) return message_[at];
    for (const InstructionId id : others_[at])
      if (is_there(id)) return id;
    return kNoInstruction;
  }

  const Schedule& schedule_;
  const Program& dataflow_;
  ValueIndex index_;
  std::vector<InstructionId> producer_;
  std::vector<InstructionId> message_;                        ///< by the value that it carries
  std::map<std::size_t, std::vector<InstructionId>> others_;  ///< the value's other messages
  std::vector<std::int32_t> sent_;  ///< [value]: its SENDs so far; empty for a chain
  std::vector<std::uint8_t> posted_ends_;
};

}  // namespace

Instruction make_message_end(const PostedStep& step, const Program& dataflow, std::uint32_t lane,
                             Role role) {
  const Instruction& message = dataflow.instructions[step.id];
  if (is_send(step.op.kind)) return {step.op, lane, message.rank, message.peer, role};
  return {step.op, lane, message.peer, message.rank, role};
}

std::vector<PostedSteps> find_steps(const ValidSchedule& schedule, const Program& dataflow,
                                    const std::vector<RankOrder>& posted) {
  StepSearch search(schedule, dataflow);
  std::vector<PostedSteps> steps;
  for (std::int32_t rank = 0; rank < dataflow.ranks; ++rank)
    steps.push_back(search.find(rank, posted[rank]));
  search.expect_both_ends();
  return steps;
}

}  // namespace bubblescope::inline sim
