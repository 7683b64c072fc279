// The dataflow lowering: compute ops in their rank's lane, messages in no lane.
#include "sim/ir/lower.h"

#include <string>
#include <vector>

#include "sim/ir/defer_receives.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/lower_messages.h"
#include "sim/ir/post_messages.h"
#include "sim/ir/program_draft.h"

namespace bubblescope {

namespace {

/// Compute ops get draft ids 0..n-1 rank by rank, then come the messages in order of discovery.
class DataflowLowering {
 public:
  DataflowLowering(const Schedule& schedule, const LowerOptions& options)
      : schedule_(schedule),
        options_(options),
        made_index_(schedule),
        maker_(made_index_.size(), kNoInstruction),
        draft_(schedule.shape.ranks, 2 * static_cast<std::size_t>(schedule.op_count())) {
    messages_.reserve(static_cast<std::size_t>(schedule.op_count()));
  }

  std::variant<Program, Deadlock> run() && {
    find_makers();
    for (const RankOrder& ops : schedule_.order)
      for (std::size_t at = 0; at < ops.size(); ++at) add_compute(ops, at);
    for (const Message& message : messages_) add_message(message);
    maker_ = {};
    return std::move(draft_).finish();
  }

 private:
  /// Between two compute ops, by draft id; what it carries follows from who consumes it.
  struct Message {
    InstructionId maker;
    InstructionId consumer;
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
    const std::int32_t rank = schedule_.rank_of(op.stage, op.microbatch);
    const InstructionId id = draft_.add({op, static_cast<std::uint32_t>(rank), rank, rank});
    const bool joint = op.pairing == Pairing::kFirst && options_.overlap != Overlap::kSerial;
    wait_for_inputs(op, id, id);
    if (joint) wait_for_inputs(ops[at + 1], id + 1, id);
  }

  /// `waiter` waits for what `op` needs: itself, or the first half of its pair for the second.
  void wait_for_inputs(const Op& op, InstructionId id, InstructionId waiter) {
    for (const Made& made : needs_of(schedule_, op)) wait_for(made, op, id, waiter);
    if (has_recompute_ && gives_input_grad(op.kind)) {
      const Made recomputed{Product::kRecomputed, op.stage, op.microbatch, op.slice};
      if (maker_[made_index_(recomputed)] != kNoInstruction) wait_for(recomputed, op, id, waiter);
    }
  }

  void wait_for(const Made& made, const Op& op, InstructionId id, InstructionId waiter) {
    const InstructionId maker = maker_[made_index_(made)];
    if (maker == kNoInstruction)
      throw Error(Fault::kProblem, to_string(op) + " waits for stage " +
                                       std::to_string(made.stage) + ", micro-batch " +
                                       std::to_string(made.microbatch) + ", which no rank runs");
    // What the pair itself makes: its first half starts both, and a fused one's second ends both.
    const bool joint = op.pairing != Pairing::kAlone && options_.overlap != Overlap::kSerial;
    const InstructionId first = op.pairing == Pairing::kSecond ? id - 1 : id;
    if (joint && (maker == first || maker == first + 1) && (maker >= waiter)) return;
    const bool local = schedule_.rank_of(made.stage, made.microbatch) ==
                       schedule_.rank_of(op.stage, op.microbatch);
    draft_.wait_for(local ? maker : message_id(maker, id));
  }

  /// One consumer for each product that crosses ranks, so no message is made twice: but a joint
  /// pair's second half asks for its inputs a second time.
  InstructionId message_id(InstructionId maker, InstructionId consumer) {
    const bool known = !messages_.empty() && messages_.back().consumer == consumer &&
                       messages_.back().maker == maker;
    if (!known) messages_.push_back({maker, consumer});
    return computes_ + static_cast<InstructionId>(messages_.size()) - 1;
  }

  void add_message(const Message& message) {
    const Instruction& consumer = draft_.instruction(message.consumer);
    const Op& op = consumer.op;
    const bool forward = op.kind == OpKind::kForward;
    const Made made{forward ? Product::kActivation : Product::kGradient,
                    op.stage + (forward ? -1 : 1), op.microbatch, op.slice};
    const std::int32_t rank = schedule_.rank_of(made.stage, made.microbatch);
    draft_.add({send_of(made), kNoLane, rank, consumer.rank});
    draft_.wait_for(message.maker);
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

std::string to_string(P2pMode mode, std::int32_t eager_slots) {
  std::string text(kP2pModes[static_cast<std::size_t>(mode)].name);
  if (mode == P2pMode::kEager) text += ":" + std::to_string(eager_slots);
  return text;
}

std::vector<RankOrder> posted_lists(const Schedule& schedule, Lowering posting) {
  if (posting == Lowering::kAsap || posts_messages(schedule)) return post_messages(schedule);
  return defer_receives(schedule, post_messages(schedule));
}

std::variant<Program, Deadlock> lower_messages(const Program& dataflow,
                                               const std::vector<PostedSteps>& steps,
                                               const LowerOptions& options) {
  switch (options.mode) {
    case P2pMode::kDataflow: return dataflow;
    case P2pMode::kFifo: return lower_to_queues(dataflow, steps, std::nullopt);
    case P2pMode::kEager: return lower_to_queues(dataflow, steps, options.eager_slots);
    case P2pMode::kRendezvous: return lower_to_queues(dataflow, steps, 0);
    case P2pMode::kHostRendezvous:
    case P2pMode::kHostSend:
    case P2pMode::kBatched: return lower_to_host(dataflow, steps, options.mode);
  }
  return dataflow;
}

std::variant<Program, Deadlock> lower(const Schedule& schedule, const LowerOptions& options) {
  std::variant<Program, Deadlock> dataflow = DataflowLowering(schedule, options).run();
  const auto* program = std::get_if<Program>(&dataflow);
  if (options.mode == P2pMode::kDataflow || !program) return dataflow;
  const std::vector<RankOrder> posted = posted_lists(schedule, options.posting);
  return lower_messages(*program, find_steps(schedule, *program, posted), options);
}

}  // namespace bubblescope
