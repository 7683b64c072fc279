// The dataflow lowering: compute ops in their rank's lane, messages in no lane, copies in two lanes
// of their rank, one per direction.
#include "sim/ir/lower_dataflow.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/after_edges.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/program_draft.h"

namespace bubblescope::inline sim {

namespace {

/// Compute ops get draft ids 0..n-1 rank by rank; messages follow in the order in which they are
/// found.
class DataflowLowering {
 public:
  DataflowLowering(const Schedule& schedule, Overlap overlap, bool has_late_results)
      : schedule_(schedule),
        overlap_(overlap),
        has_late_results_(has_late_results),
        value_index_(schedule),
        after_(schedule, value_index_),
        producer_(value_index_.size(), kNoInstruction),
        draft_(schedule.shape.ranks, 2 * static_cast<std::size_t>(schedule.op_count())) {
    messages_.reserve(static_cast<std::size_t>(schedule.op_count()));
  }

  std::variant<Program, Deadlock> run() && {
    find_producers();
    for (const RankOrder& ops : schedule_.order) add_rank(ops);
    for (const Message& message : messages_) add_message(message);
    producer_ = {};
    return std::move(draft_).finish();
  }

 private:
  /// A message between two compute ops, by draft id. Of fused forwards, the last one produces the
  /// values of all.
  struct Message {
    Value value;
    InstructionId producer;
    InstructionId consumer;  ///< the first, if there are more
    std::int32_t receiver;   ///< the consumer's rank
  };

  /// The dependencies of the current rank's copies, and the ops that wait for them.
  struct Copies {
    std::uint32_t evict_lane = kNoLane;
    std::uint32_t load_lane = kNoLane;
    InstructionId first_id = 0;  ///< the rank's first draft id
    InstructionId last_compute = kNoInstruction;
    InstructionId last_load = kNoInstruction;
    std::vector<InstructionId> evicted;  ///< EVICTs since the last compute op
    /// Holds, by position of a compute op, the last LOAD before it.
    std::vector<InstructionId> load_before;
  };

  /// In a fused pair, and where results are late, both are available when the second op ends.
  void find_producers() {
    InstructionId id = 0;
    const bool fused = overlap_ == Overlap::kFused || has_late_results_;
    for (const RankOrder& ops : schedule_.order)
      for (const Op& op : ops) {
        if (is_copy(op.kind)) expect_offload_target(op);
        producer_[value_index_(op)] =
            fused && op.pairing == Pairing::kFirst ? id + 1 : last_of(op, id);
        has_recompute_ = has_recompute_ || op.kind == OpKind::kRecompute;
        ++id;
      }
    ordered_ = id;
  }

  void expect_offload_target(const Op& op) const {
    if (schedule_.offload_target_of_rank.size() == schedule_.order.size()) return;
    throw Error(Fault::kProblem, to_string(op) + " has no offload target: " + schedule_.name +
                                     " needs one for each rank; name them");
  }

  void add_rank(const RankOrder& ops) {
    copies_ = {};
    if (!schedule_.offload_target_of_rank.empty())
      copies_.load_before.resize(ops.size(), kNoInstruction);
    copies_.first_id = draft_.size();
    rank_end_ = draft_.size() + static_cast<InstructionId>(ops.size());
    for (std::size_t at = 0; at < ops.size(); ++at) {
      if (is_copy(ops[at].kind))
        add_copy(ops[at]);
      else
        add_compute(ops, at);
    }
  }

  /// Returns the last of the forwards that are fused with this one.
  InstructionId last_of(const Op& op, InstructionId id) const {
    const std::int64_t fused = schedule_.fused_forwards;
    if (fused == 1 || op.kind != OpKind::kForward) return id;
    return id + static_cast<InstructionId>(fused - 1 - schedule_.forward_index(op) % fused);
  }

  void add_compute(const RankOrder& ops, std::size_t at) {
    const Op& op = ops[at];
    const std::int32_t rank = schedule_.rank_of(op.stage, op.microbatch);
    const InstructionId id = draft_.add({op, static_cast<std::uint32_t>(rank), rank, rank});
    const bool starts_as_pair = op.pairing == Pairing::kFirst && overlap_ != Overlap::kSerial;
    wait_for_inputs(op, id, id);
    if (starts_as_pair) wait_for_inputs(ops[at + 1], id + 1, id);
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
    const std::int32_t offload_target = schedule_.offload_target_of_rank[rank];
    const InstructionId id =
        draft_.add({op, get_copy_lane(rank, offload_target, evicts), rank, offload_target});
    wait_for_inputs(op, id, id);
    if (!evicts) {
      if (copies_.last_compute != kNoInstruction) draft_.wait_for(copies_.last_compute);
      for (const InstructionId evicted : copies_.evicted) draft_.wait_for(evicted);
      copies_.last_load = id;
      return;
    }
    copies_.evicted.push_back(id);
    if (offload_target == rank) return;
    const Value kept{ValueKind::kActivation, op.stage, op.microbatch, op.slice};
    const InstructionId forward = producer_[value_index_(kept)];
    const InstructionId load = copies_.load_before.at(forward - copies_.first_id);
    if (load != kNoInstruction) draft_.wait_for(load);
  }

  std::uint32_t get_copy_lane(std::int32_t rank, std::int32_t offload_target, bool evicts) {
    std::uint32_t& lane = evicts ? copies_.evict_lane : copies_.load_lane;
    if (lane != kNoLane) return lane;
    const std::string other =
        offload_target == rank ? "host" : "rank " + std::to_string(offload_target);
    return lane = draft_.add_lane({rank, (evicts ? "evict → " : "load ← ") + other});
  }

  /// Makes `waiter` wait for the inputs of `op`: it is `op` itself, or the first half of its pair.
  void wait_for_inputs(const Op& op, InstructionId id, InstructionId waiter) {
    for (const Value& value : collect_needs(schedule_, op)) wait_for(value, op, id, waiter);
    const bool uses_kept = gives_input_grad(op.kind) || op.kind == OpKind::kRecompute;
    if (has_recompute_ && gives_input_grad(op.kind))
      wait_if_made(ValueKind::kRecomputed, op, id, waiter);
    if (!schedule_.offload_target_of_rank.empty() && uses_kept)
      wait_if_made(ValueKind::kLoaded, op, id, waiter);
    for (const std::size_t awaited : after_.of(value_index_(op)))
      wait_for_edge(producer_[awaited], waiter);
  }

  /// An awaited op precedes the op in the order of their rank. So if it does not end before
  /// `waiter`, both belong to the same pair or fused forwards, which run in order anyway.
  void wait_for_edge(InstructionId awaited, InstructionId waiter) {
    const bool in_same_group = awaited >= waiter && awaited < rank_end_;
    if (!in_same_group) draft_.wait_for(awaited);
  }

  void wait_if_made(ValueKind value_kind, const Op& op, InstructionId id, InstructionId waiter) {
    const Value value{value_kind, op.stage, op.microbatch, op.slice};
    if (producer_[value_index_(value)] != kNoInstruction) wait_for(value, op, id, waiter);
  }

  void wait_for(const Value& value, const Op& op, InstructionId id, InstructionId waiter) {
    if (are_fused(schedule_, value, op)) return;
    const InstructionId producer = producer_[value_index_(value)];
    if (producer == kNoInstruction)
      throw Error(Fault::kProblem, to_string(op) + " waits for stage " +
                                       std::to_string(value.stage) + ", micro-batch " +
                                       std::to_string(value.microbatch) + ", which no rank runs");
    // Values of the pair itself: its first half starts both ops, and a fused pair's second half
    // ends both.
    const bool is_paired = op.pairing != Pairing::kAlone && overlap_ != Overlap::kSerial;
    const InstructionId first = op.pairing == Pairing::kSecond ? id - 1 : id;
    if (is_paired && (producer == first || producer == first + 1) && (producer >= waiter)) return;
    if (has_late_results_ && producer == id) return;  // of the pair's first half, which precedes it
    const std::int32_t rank = schedule_.rank_of(op.stage, op.microbatch);
    const bool local = schedule_.rank_of(value.stage, value.microbatch) == rank;
    draft_.wait_for(local ? producer : message_id({value, producer, id, rank}));
  }

  /// In a chain, each value that crosses ranks has one consumer, so its message is created once.
  /// Only the second half of a pair asks for its inputs twice. In a stage graph, the stages of a
  /// rank that need a value share a message.
  InstructionId message_id(const Message& message) {
    const std::size_t next = messages_.size();
    std::size_t number = next;
    if (!schedule_.graph.is_chain())
      number = shared_messages_.try_emplace({value_index_(message.value), message.receiver}, next)
                   .first->second;
    else if (!messages_.empty() && messages_.back().consumer == message.consumer &&
             messages_.back().producer == message.producer)
      number = next - 1;
    if (number == next) messages_.push_back(message);
    return ordered_ + static_cast<InstructionId>(number);
  }

  void add_message(const Message& message) {
    const std::int32_t rank = schedule_.rank_of(message.value.stage, message.value.microbatch);
    draft_.add({make_send(message.value), kNoLane, rank, message.receiver});
    draft_.wait_for(message.producer);
  }

  const Schedule& schedule_;
  Overlap overlap_;
  bool has_late_results_;
  ValueIndex value_index_;
  AfterEdges after_;
  std::vector<InstructionId> producer_;
  std::vector<Message> messages_;
  std::map<std::pair<std::size_t, std::int32_t>, std::size_t> shared_messages_;
  /// Number of compute ops and copies; messages have the following draft ids.
  InstructionId ordered_ = 0;
  InstructionId rank_end_ = 0;  ///< draft id after the current rank's last op
  bool has_recompute_ = false;
  Copies copies_;
  ProgramDraft draft_;
};

}  // namespace

std::variant<Program, Deadlock> lower_by_sorting(const ValidSchedule& schedule, Overlap overlap) {
  return DataflowLowering(schedule, overlap, false).run();
}

std::variant<Program, Deadlock> lower_with_late_results(const ValidSchedule& schedule) {
  return DataflowLowering(schedule, Overlap::kSerial, true).run();
}

}  // namespace bubblescope::inline sim
