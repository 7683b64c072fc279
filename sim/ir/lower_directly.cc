// Advances one rank after the other, each until it waits for a message. Ranks resume in the same
// order as in ProgramDraft::finish(), so that both lowerings agree.
#include <array>
#include <utility>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/lower_dataflow.h"

namespace bubblescope::inline sim {

namespace {

/// A rank that can continue, or a message whose value has been produced.
struct Runnable {
  bool is_message = false;
  std::uint32_t index = 0;  ///< the rank, or the producer
};

/// The receiving stage of a message, as two plain fields: loading a returned std::optional would
/// stall on the stores that created it.
struct Receiver {
  bool exists = false;
  std::int32_t stage = 0;
};

/// One value, and the message that carries it to another rank.
struct Slot {
  InstructionId producer = kNoInstruction;
  InstructionId message = kNoInstruction;
  std::uint32_t waiting_rank = kNoLane;     ///< blocked on the message
  InstructionId consumer = kNoInstruction;  ///< of the message
};

bool is_plain(OpKind kind) {
  return kind == OpKind::kForward || gives_input_grad(kind) || kind == OpKind::kWeightGrad;
}

class DirectLowering {
 public:
  DirectLowering(const Schedule& schedule, Overlap overlap)
      : schedule_(schedule),
        pairs_are_atomic_(overlap != Overlap::kSerial),
        slices_(static_cast<std::size_t>(schedule.shape.slices)),
        head_(schedule.order.size(), 0) {
    const std::size_t expected = 2 * static_cast<std::size_t>(schedule.op_count());
    program_.ranks = schedule.shape.ranks;
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank)
      program_.lanes.push_back({rank, "compute"});
    program_.instructions.reserve(expected);
    program_.dependency_begin.reserve(expected + 1);
    program_.dependencies.reserve(2 * expected);
    const std::size_t row = static_cast<std::size_t>(schedule.shape.microbatches) * slices_;
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
      for (const ValueKind value_kind :
           {ValueKind::kActivation, ValueKind::kGradient, ValueKind::kWeightGradient}) {
        const auto receiver = receiving_stage(schedule, {value_kind, stage, 0, 0});
        receivers_.push_back({receiver.has_value(), receiver.value_or(0)});
        rows_.push_back(rows_.size() * row);
      }
    }
    slots_.resize(rows_.size() * row);
  }

  std::optional<Program> run() && {
    for (std::uint32_t rank = 0; rank < schedule_.order.size(); ++rank) {
      runnable_.push_back({false, rank});
      while (!runnable_.empty()) {
        const bool is_message = runnable_.back().is_message;
        const std::uint32_t index = runnable_.back().index;
        runnable_.pop_back();
        if (is_message)
          place_message(index);
        else
          advance(index);
        if (!is_supported_) return std::nullopt;
      }
    }
    for (std::size_t rank = 0; rank < head_.size(); ++rank)
      if (head_[rank] < schedule_.order[rank].size()) return std::nullopt;
    if (sent_ != received_) return std::nullopt;
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
    return std::move(program_);
  }

 private:
  void advance(std::uint32_t rank) {
    const RankOrder& ops = schedule_.order[rank];
    while (head_[rank] < ops.size() && try_to_place(ops, rank)) ++head_[rank];
  }

  /// Places the current op of a rank if all of its inputs are placed.
  bool try_to_place(const RankOrder& ops, std::uint32_t rank) {
    const Op* const op = &ops[head_[rank]];
    const bool atomic = pairs_are_atomic_ && op->pairing == Pairing::kFirst;
    if (atomic && head_[rank] + 1 == ops.size()) return reject();
    const Op* const last = atomic ? op + 1 : op;
    Pair pair;
    for (const Op* half = op; half <= last; ++half)
      if (!is_plain(half->kind)) return reject();
    if (atomic) pair = {index(*op), index(*last)};
    input_count_ = 0;
    for (const Op* half = op; half <= last; ++half)
      if (!find_inputs(*half, rank, pair)) return false;
    place(*op, rank);
    return is_supported_;
  }

  /// The values of the two halves of a pair, by index().
  struct Pair {
    std::size_t first = kNoValue;
    std::size_t second = kNoValue;
  };

  /// Finds the inputs of an op, except those from its own pair. If one is missing, the rank waits
  /// for it.
  bool find_inputs(const Op& op, std::uint32_t rank, const Pair& pair) {
    bool found = true;
    for_each_need(schedule_, op, [&](const Value& value) {
      const std::size_t at = index(value);
      if (!found || at == pair.first || at == pair.second) return;
      const bool local =
          schedule_.rank_of(value.stage, value.microbatch) == static_cast<std::int32_t>(rank);
      Slot& slot = slots_[at];
      const InstructionId awaited = local ? slot.producer : slot.message;
      if (awaited != kNoInstruction) {
        inputs_[input_count_++] = {awaited, local ? nullptr : &slot};
        return;
      }
      found = false;
      if (local)
        reject();
      else
        slot.waiting_rank = rank;
    });
    return found;
  }

  void place(const Op& op, std::uint32_t rank) {
    const auto own = static_cast<std::int32_t>(rank);
    const InstructionId id = program_.size();
    add(rank, own, own) = op;
    for (std::size_t at = 0; at < input_count_; ++at) {
      program_.dependencies.push_back(inputs_[at].id);
      if (inputs_[at].slot != nullptr) receive(*inputs_[at].slot, id);
    }
    const Value value = value_of(op);
    Slot& slot = slots_[index(value)];
    const bool in_place = schedule_.rank_of(op.stage, op.microbatch) == own;
    is_supported_ = is_supported_ && in_place && slot.producer == kNoInstruction;
    slot.producer = id;
    const Receiver& receiver = receiver_of(value);
    if (!receiver.exists || schedule_.rank_of(receiver.stage, op.microbatch) == own) return;
    runnable_.push_back({true, id});
    ++sent_;
  }

  /// Every message has one consumer, or the two halves of a pair.
  void receive(Slot& slot, InstructionId consumer) {
    if (slot.consumer == kNoInstruction) {
      slot.consumer = consumer;
      ++received_;
      return;
    }
    const bool of_pair = program_.instructions[consumer].op.pairing == Pairing::kSecond;
    is_supported_ = is_supported_ && of_pair && slot.consumer + 1 == consumer;
  }

  void place_message(InstructionId producer) {
    const Value value = value_of(program_.instructions[producer].op);
    const std::int32_t sender = program_.instructions[producer].rank;
    const std::int32_t receiver = schedule_.rank_of(receiver_of(value).stage, value.microbatch);
    Slot& slot = slots_[index(value)];
    slot.message = program_.size();
    const bool forward = value.value_kind == ValueKind::kActivation;
    Op& op = add(kNoLane, sender, receiver);
    op.stage = value.stage;
    op.microbatch = value.microbatch;
    op.slice = value.slice;
    op.kind = forward ? OpKind::kSendForward : OpKind::kSendBackward;
    program_.dependencies.push_back(producer);
    if (slot.waiting_rank != kNoLane) runnable_.push_back({false, slot.waiting_rank});
  }

  /// Returns the op of a new instruction for the caller to fill in, field by field: copying a
  /// temporary would stall on the stores that created it.
  Op& add(std::uint32_t lane, std::int32_t rank, std::int32_t peer) {
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
    Instruction& instruction = program_.instructions.emplace_back();
    instruction.lane = lane;
    instruction.rank = rank;
    instruction.peer = peer;
    return instruction.op;
  }

  const Receiver& receiver_of(const Value& value) const {
    return receivers_[kValueKinds * static_cast<std::size_t>(value.stage) +
                      static_cast<std::size_t>(value.value_kind)];
  }

  /// Each row holds one kind of value of one stage, with an entry per micro-batch and slice.
  std::size_t index(const Value& value) const {
    return rows_[kValueKinds * static_cast<std::size_t>(value.stage) +
                 static_cast<std::size_t>(value.value_kind)] +
           static_cast<std::size_t>(value.microbatch) * slices_ +
           static_cast<std::size_t>(value.slice);
  }
  std::size_t index(const Op& op) const { return index(value_of(op)); }

  bool reject() { return is_supported_ = false; }

  struct Input {
    InstructionId id = kNoInstruction;
    Slot* slot = nullptr;  ///< null unless the input is a message
  };

  static constexpr std::size_t kValueKinds = 3;  ///< kinds of values of plain ops
  static constexpr std::size_t kNoValue = ~std::size_t{0};

  const Schedule& schedule_;
  bool pairs_are_atomic_;
  std::size_t slices_;
  std::vector<std::size_t> rows_;  ///< [kValueKinds * stage + product]: the first of its slots
  std::vector<Slot> slots_;
  std::vector<Receiver> receivers_;  ///< same index
  std::vector<std::size_t> head_;
  std::vector<Runnable> runnable_;
  std::array<Input, 8> inputs_;
  std::size_t input_count_ = 0;
  std::size_t sent_ = 0;
  std::size_t received_ = 0;
  Program program_;
  bool is_supported_ = true;
};

/// Excludes schedules that this lowering does not support. Unsupported ops are found later.
bool is_plain(const Schedule& schedule, Overlap overlap) {
  return overlap != Overlap::kFused && schedule.fused_forwards == 1 &&
         schedule.offload_target_of_rank.empty() && schedule.after.empty() &&
         schedule.graph.is_chain() &&
         schedule.order.size() == static_cast<std::size_t>(schedule.shape.ranks);
}

}  // namespace

std::optional<Program> lower_directly(const ValidSchedule& schedule, Overlap overlap) {
  if (!is_plain(schedule, overlap)) return std::nullopt;
  return DirectLowering(schedule, overlap).run();
}

}  // namespace bubblescope::inline sim
