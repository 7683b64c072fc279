// The dataflow lowering: compute ops in their rank's lane, messages in no lane, copies in two lanes
// of their rank, one per direction.
#include "sim/ir/lower.h"

#include <string>
#include <vector>

#include "sim/ir/defer_receives.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/lower_dataflow.h"
#include "sim/ir/lower_messages.h"
#include "sim/ir/lower_update.h"
#include "sim/ir/post_messages.h"
#include "sim/ir/program_draft.h"
#include "sim/ir/share_links.h"

namespace bubblescope {

namespace {

/// Compute ops get draft ids 0..n-1 rank by rank; messages follow in the order in which they are
/// found.
class DataflowLowering {
 public:
  DataflowLowering(const Schedule& schedule, Overlap overlap)
      : schedule_(schedule),
        overlap_(overlap),
        made_index_(schedule),
        maker_(made_index_.size(), kNoInstruction),
        draft_(schedule.shape.ranks, 2 * static_cast<std::size_t>(schedule.op_count())) {
    messages_.reserve(static_cast<std::size_t>(schedule.op_count()));
  }

  std::variant<Program, Deadlock> run() && {
    find_makers();
    for (const RankOrder& ops : schedule_.order) add_rank(ops);
    for (const Message& message : messages_) add_message(message);
    maker_ = {};
    return std::move(draft_).finish();
  }

 private:
  /// A message between two compute ops, by draft id. Its consumer determines what it carries.
  struct Message {
    InstructionId maker;
    InstructionId consumer;
  };

  /// The dependencies of the current rank's copies, and the ops that wait for them.
  struct Copies {
    std::uint32_t evict_lane = kNoLane;
    std::uint32_t load_lane = kNoLane;
    InstructionId first_id = 0;  ///< the rank's first draft id
    InstructionId last_compute = kNoInstruction;
    InstructionId last_load = kNoInstruction;
    std::vector<InstructionId> evicted;  ///< EVICTs since the last compute op
    /// By position of a compute op: the last LOAD before it.
    std::vector<InstructionId> load_before;
  };

  /// In a fused pair both results are available when the second op ends.
  void find_makers() {
    InstructionId id = 0;
    const bool fused = overlap_ == Overlap::kFused;
    for (const RankOrder& ops : schedule_.order)
      for (const Op& op : ops) {
        if (is_copy(op.kind)) expect_keeper(op);
        maker_[made_index_(op)] = fused && op.pairing == Pairing::kFirst ? id + 1 : last_of(op, id);
        has_recompute_ = has_recompute_ || op.kind == OpKind::kRecompute;
        ++id;
      }
    ordered_ = id;
  }

  void expect_keeper(const Op& op) const {
    if (schedule_.keeper_of_rank.size() == schedule_.order.size()) return;
    throw Error(Fault::kProblem, to_string(op) + " has nowhere to go: " + schedule_.name +
                                     " names no keeper for each rank; name them");
  }

  void add_rank(const RankOrder& ops) {
    copies_ = {};
    if (!schedule_.keeper_of_rank.empty()) copies_.load_before.resize(ops.size(), kNoInstruction);
    copies_.first_id = draft_.size();
    for (std::size_t at = 0; at < ops.size(); ++at) {
      if (is_copy(ops[at].kind))
        add_copy(ops[at]);
      else
        add_compute(ops, at);
    }
  }

  /// The last of the forwards that are fused with this one.
  InstructionId last_of(const Op& op, InstructionId id) const {
    const std::int64_t joint = schedule_.joint_forwards;
    if (joint == 1 || op.kind != OpKind::kForward) return id;
    return id + static_cast<InstructionId>(joint - 1 - schedule_.forward_index(op) % joint);
  }

  void add_compute(const RankOrder& ops, std::size_t at) {
    const Op& op = ops[at];
    const std::int32_t rank = schedule_.rank_of(op.stage, op.microbatch);
    const InstructionId id = draft_.add({op, static_cast<std::uint32_t>(rank), rank, rank});
    const bool joint = op.pairing == Pairing::kFirst && overlap_ != Overlap::kSerial;
    wait_for_inputs(op, id, id);
    if (joint) wait_for_inputs(ops[at + 1], id + 1, id);
    for (const InstructionId evicted : copies_.evicted) draft_.wait_for(evicted);
    copies_.evicted.clear();
    copies_.last_compute = id;
    if (!copies_.load_before.empty()) copies_.load_before[at] = copies_.last_load;
  }

  /// An EVICT begins when its forward has ended. If the offload target is another rank, the LOADs
  /// before that forward must have ended too, so that the target never holds more than the order
  /// says. A LOAD begins when the compute op before it and the EVICTs in between have ended.
  void add_copy(const Op& op) {
    const bool evicts = op.kind == OpKind::kEvict;
    const std::int32_t rank = schedule_.rank_of(op.stage, op.microbatch);
    const std::int32_t keeper = schedule_.keeper_of_rank[rank];
    const InstructionId id = draft_.add({op, lane_of_copies(rank, keeper, evicts), rank, keeper});
    wait_for_inputs(op, id, id);
    if (!evicts) {
      if (copies_.last_compute != kNoInstruction) draft_.wait_for(copies_.last_compute);
      for (const InstructionId evicted : copies_.evicted) draft_.wait_for(evicted);
      copies_.last_load = id;
      return;
    }
    copies_.evicted.push_back(id);
    if (keeper == rank) return;
    const Made kept{Product::kActivation, op.stage, op.microbatch, op.slice};
    const InstructionId forward = maker_[made_index_(kept)];
    const InstructionId load = copies_.load_before.at(forward - copies_.first_id);
    if (load != kNoInstruction) draft_.wait_for(load);
  }

  std::uint32_t lane_of_copies(std::int32_t rank, std::int32_t keeper, bool evicts) {
    std::uint32_t& lane = evicts ? copies_.evict_lane : copies_.load_lane;
    if (lane != kNoLane) return lane;
    const std::string other = keeper == rank ? "host" : "rank " + std::to_string(keeper);
    return lane = draft_.add_lane({rank, (evicts ? "evict → " : "load ← ") + other});
  }

  /// Makes `waiter` wait for the inputs of `op`: it is `op` itself, or the first half of its pair.
  void wait_for_inputs(const Op& op, InstructionId id, InstructionId waiter) {
    for (const Made& made : needs_of(schedule_, op)) wait_for(made, op, id, waiter);
    const bool uses_kept = gives_input_grad(op.kind) || op.kind == OpKind::kRecompute;
    if (has_recompute_ && gives_input_grad(op.kind))
      wait_if_made(Product::kRecomputed, op, id, waiter);
    if (!schedule_.keeper_of_rank.empty() && uses_kept)
      wait_if_made(Product::kLoaded, op, id, waiter);
  }

  void wait_if_made(Product product, const Op& op, InstructionId id, InstructionId waiter) {
    const Made made{product, op.stage, op.microbatch, op.slice};
    if (maker_[made_index_(made)] != kNoInstruction) wait_for(made, op, id, waiter);
  }

  void wait_for(const Made& made, const Op& op, InstructionId id, InstructionId waiter) {
    if (are_joint(schedule_, made, op)) return;
    const InstructionId maker = maker_[made_index_(made)];
    if (maker == kNoInstruction)
      throw Error(Fault::kProblem, to_string(op) + " waits for stage " +
                                       std::to_string(made.stage) + ", micro-batch " +
                                       std::to_string(made.microbatch) + ", which no rank runs");
    // Values of the pair itself: its first half starts both ops, and a fused pair's second half
    // ends both.
    const bool joint = op.pairing != Pairing::kAlone && overlap_ != Overlap::kSerial;
    const InstructionId first = op.pairing == Pairing::kSecond ? id - 1 : id;
    if (joint && (maker == first || maker == first + 1) && (maker >= waiter)) return;
    const bool local = schedule_.rank_of(made.stage, made.microbatch) ==
                       schedule_.rank_of(op.stage, op.microbatch);
    draft_.wait_for(local ? maker : message_id(maker, id));
  }

  /// Each value that crosses ranks has one consumer, so its message is created once. Only the
  /// second half of a pair asks for its inputs twice.
  InstructionId message_id(InstructionId maker, InstructionId consumer) {
    const bool known = !messages_.empty() && messages_.back().consumer == consumer &&
                       messages_.back().maker == maker;
    if (!known) messages_.push_back({maker, consumer});
    return ordered_ + static_cast<InstructionId>(messages_.size()) - 1;
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
  Overlap overlap_;
  MadeIndex made_index_;
  std::vector<InstructionId> maker_;
  std::vector<Message> messages_;
  /// Number of compute ops and copies; messages have the following draft ids.
  InstructionId ordered_ = 0;
  bool has_recompute_ = false;
  Copies copies_;
  ProgramDraft draft_;
};

std::variant<Program, Deadlock> lower_dataflow(const ValidSchedule& schedule, Overlap overlap) {
  if (std::optional<Program> program = lower_directly(schedule, overlap))
    return *std::move(program);
  return lower_by_sorting(schedule, overlap);
}

}  // namespace

std::vector<RankOrder> posted_lists(const ValidSchedule& schedule, Lowering posting) {
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

std::variant<Program, Deadlock> lower_by_sorting(const ValidSchedule& schedule, Overlap overlap) {
  return DataflowLowering(schedule, overlap).run();
}

std::variant<Program, Deadlock> lower(const ValidSchedule& schedule, const LowerOptions& options) {
  std::variant<Program, Deadlock> lowered = lower_dataflow(schedule, options.overlap);
  if (options.ranks_per_host_link > 1 && std::holds_alternative<Program>(lowered))
    lowered = share_host_links(std::get<Program>(lowered), options.ranks_per_host_link);
  if (options.mode != P2pMode::kDataflow)
    if (const auto* dataflow = std::get_if<Program>(&lowered)) {
      const std::vector<RankOrder> posted = posted_lists(schedule, options.posting);
      lowered = lower_messages(*dataflow, find_steps(schedule, *dataflow, posted), options);
    }
  if (posts_collectives(schedule))
    if (const auto* program = std::get_if<Program>(&lowered))
      lowered = lower_collectives(schedule, *program);
  if (options.update.any())
    if (const auto* program = std::get_if<Program>(&lowered))
      lowered = lower_update(schedule, *program, options.update);
  return lowered;
}

}  // namespace bubblescope
