// The dataflow lowering: compute ops in their rank's lane, messages in no lane.
#include "sim/ir/lower.h"

#include <string>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/program_draft.h"

namespace bubblescope {

namespace {

constexpr InstructionId kNobody = 0xffffffffu;

/// Compute ops get draft ids 0..n-1 rank by rank, then come the messages in order of discovery.
class Lowering {
 public:
  Lowering(const Schedule& schedule, const LowerOptions& options)
      : schedule_(schedule),
        options_(options),
        made_index_(schedule),
        maker_(made_index_.size(), kNobody),
        draft_(schedule.shape.ranks, 2 * static_cast<std::size_t>(schedule.op_count())) {}

  std::variant<Program, Deadlock> run() && {
    find_makers();
    for (const RankOrder& ops : schedule_.order)
      for (std::size_t at = 0; at < ops.size(); ++at) add_compute(ops, at);
    for (const Message& message : messages_) {
      draft_.add(message.instruction);
      draft_.wait_for(message.maker);
    }
    return std::move(draft_).finish();
  }

 private:
  struct Message {
    Instruction instruction;
    InstructionId maker;
  };

  /// In a fused pair the second op's end makes both results.
  void find_makers() {
    InstructionId id = 0;
    const bool fused = options_.overlap == Overlap::kFused;
    for (const RankOrder& ops : schedule_.order)
      for (const Op& op : ops) {
        maker_[made_index_(op)] = fused && op.pairing == Pairing::kFirst ? id + 1 : id;
        has_recompute_ = has_recompute_ || op.kind == OpKind::kRecompute;
        ++id;
      }
    computes_ = id;
  }

  void add_compute(const RankOrder& ops, std::size_t at) {
    const Op& op = ops[at];
    const std::int32_t rank = schedule_.rank_of_stage[op.stage];
    const InstructionId id =
        draft_.add({op, static_cast<std::uint32_t>(rank), rank, rank});
    const bool joint = op.pairing == Pairing::kFirst && options_.overlap != Overlap::kSerial;
    wait_for_inputs(op, id);
    if (joint) wait_for_inputs(ops[at + 1], id);
  }

  /// `waiter` waits for what `op` needs, save for what its own pair makes.
  void wait_for_inputs(const Op& op, InstructionId waiter) {
    for (const Made& made : needs_of(schedule_, op)) wait_for(made, op, waiter);
    if (has_recompute_ && gives_input_grad(op.kind)) {
      const Made recomputed{Product::kRecomputed, op.stage, op.microbatch, op.slice};
      if (maker_[made_index_(recomputed)] != kNobody) wait_for(recomputed, op, waiter);
    }
  }

  void wait_for(const Made& made, const Op& op, InstructionId waiter) {
    const InstructionId maker = maker_[made_index_(made)];
    if (maker == kNobody)
      throw Error(Fault::kProblem, to_string(op) + " waits for stage " +
                                       std::to_string(made.stage) + ", micro-batch " +
                                       std::to_string(made.microbatch) + ", which no rank runs");
    if (op.pairing != Pairing::kAlone && (maker == waiter || maker == waiter + 1)) return;
    const std::int32_t from = schedule_.rank_of_stage[made.stage];
    const std::int32_t to = schedule_.rank_of_stage[op.stage];
    draft_.wait_for(from == to ? maker : send(made, maker, from, to));
  }

  /// One consumer for each product that crosses ranks, so no message is made twice: but the two
  /// halves of a joint pair ask twice for the second half's inputs.
  InstructionId send(const Made& made, InstructionId maker, std::int32_t from, std::int32_t to) {
    const OpKind kind = made.product == Product::kActivation ? OpKind::kSendForward
                                                             : OpKind::kSendBackward;
    if (!messages_.empty() && messages_.back().maker == maker &&
        messages_.back().instruction.op.kind == kind)
      return computes_ + static_cast<InstructionId>(messages_.size()) - 1;
    const Op op{made.stage, made.microbatch, made.slice, kind, Pairing::kAlone};
    messages_.push_back({{op, kNoLane, from, to}, maker});
    return computes_ + static_cast<InstructionId>(messages_.size()) - 1;
  }

  const Schedule& schedule_;
  const LowerOptions& options_;
  MadeIndex made_index_;
  std::vector<InstructionId> maker_;
  std::vector<Message> messages_;
  InstructionId computes_ = 0;
  bool has_recompute_ = false;
  ProgramDraft draft_;
};

}  // namespace

std::variant<Program, Deadlock> lower(const Schedule& schedule, const LowerOptions& options) {
  return Lowering(schedule, options).run();
}

}  // namespace bubblescope
