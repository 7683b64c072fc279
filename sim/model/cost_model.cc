// Computes the duration of every instruction from the costs.
#include "sim/model/cost_model.h"

#include <algorithm>
#include <string>

#include "sim/ir/counted.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

namespace {

Nanos link_duration(const CostModel& costs, const Instruction& message, std::int32_t ranks) {
  if (costs.message_between.empty()) return costs.message;
  return costs
      .message_between[static_cast<std::size_t>(std::int64_t{message.rank} * ranks + message.peer)];
}

Nanos message_duration(const CostModel& costs, const Instruction& message, std::int32_t ranks) {
  if (costs.messages.empty()) return link_duration(costs, message, ranks);
  const MessageCost& cost = costs.messages(message.op);
  return carries_activation(message.op.kind) ? cost.forward : cost.backward;
}

constexpr UpdateCost kNoUpdate{};

Nanos duration_of(const CostModel& costs, const Instruction& instruction, std::int32_t ranks) {
  if (instruction.role != Role::kWork) return 0;
  const Op& op = instruction.op;
  const StageCost& cost = costs.stage_cost(op);
  const UpdateCost& update = costs.updates.empty() ? kNoUpdate : costs.updates[op.stage];
  switch (op.kind) {
    case OpKind::kForward: return cost.forward;
    case OpKind::kBackward: return cost.backward;
    case OpKind::kInputGrad: return cost.input_grad;
    case OpKind::kWeightGrad: return cost.weight_grad;
    case OpKind::kRecompute: return cost.recompute;
    case OpKind::kEvict: return cost.evict;
    case OpKind::kLoad: return cost.load;
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward: return message_duration(costs, instruction, ranks);
    case OpKind::kUnshard: return update.unshard;
    case OpKind::kReduceGrad: return update.reduce_grad;
    case OpKind::kNorm:
      return instruction.peer == instruction.rank ? costs.norm
                                                  : link_duration(costs, instruction, ranks);
    case OpKind::kOptimizer: return update.optimizer;
    case OpKind::kReshard:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward:
    case OpKind::kWaitReduceGrad:
    case OpKind::kIdle: return 0;
  }
  return 0;
}

void expect_links(const Program& program, const CostModel& costs) {
  const std::size_t links = static_cast<std::size_t>(program.ranks) * program.ranks;
  if (!costs.message_between.empty() && costs.message_between.size() != links)
    throw Error("the costs have " + counted(costs.message_between.size(), "message time") +
                " for " + counted(links, "pair") + " of ranks; give one for each");
}

bool covers(const CostModel& costs, const Op& op, std::int64_t stages) {
  if (op.stage >= stages || op.slice >= costs.slices) return false;
  if (!has_microbatch(op.kind)) return true;
  return (costs.by_microbatch.empty() || costs.by_microbatch.covers(op)) &&
         (costs.messages.empty() || costs.messages.covers(op));
}

[[noreturn]] void refuse_op(const Op& op, const CostModel& costs) {
  if (op.stage < static_cast<std::int64_t>(costs.stages.size()) / costs.slices)
    throw Error("there is no cost for " + to_string(op) +
                "; give one for every micro-batch and slice");
  throw Error("stage " + std::to_string(op.stage) + " has no cost (the file has those of " +
              counted(costs.stages.size(), "stage") + "); add it to /stages");
}

[[noreturn]] void refuse_short_pair(const Program& program, const std::vector<Nanos>& durations) {
  const auto second =
      std::find_if(durations.begin(), durations.end(), [](Nanos duration) { return duration < 0; });
  const Instruction& instruction = program.instructions[second - durations.begin()];
  throw Error("the overlapped pair that ends with " + to_string(instruction.op) + " on rank " +
              std::to_string(instruction.rank) + " is " + to_text(-*second) +
              " shorter than its forward; give a longer 'overlapped_pair' in the cost file");
}

/// The time of a stage that several ranks share, as if one rank ran all of it.
Nanos combine_shares(std::int64_t shares, Nanos cost) {
  return multiply(cost, shares, "a stage that ranks share");
}

/// A part of the output layer: one GEMM each for F, I and W.
void add_output_layer(StageCost& cost, Nanos gemm) {
  cost.forward += gemm;
  cost.input_grad += gemm;
  cost.weight_grad += gemm;
  cost.backward += 2 * gemm;
}

/// The output layer is on the last stage of each pipeline, or divided over the side stages, which
/// have nothing else.
void place_output_layer(CostModel& model, const UniformCost& cost, const Schedule& schedule) {
  const std::int32_t side = schedule.side_stages;
  const std::int32_t chain = schedule.stages() - side;
  const std::int64_t slices = schedule.shape.slices;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const bool is_side = schedule.is_side_stage(stage);
    if (!is_side && (side > 0 || !schedule.is_last(stage))) continue;
    const Nanos whole =
        is_side ? part_of(cost.output_layer, side, stage - chain) : cost.output_layer;
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      StageCost& part_cost = model.stages[static_cast<std::size_t>(stage * slices + slice)];
      if (is_side) part_cost = {};
      add_output_layer(part_cost, part_of(whole, slices, slice));
    }
  }
}

/// The ranks whose shares of the model make up a stage. Replicas of a whole pipeline have its whole
/// stages.
std::int64_t count_shares(const Schedule& schedule, std::int32_t stage) {
  return schedule.is_data_parallel() ? 1 : schedule.replicas(stage);
}

}  // namespace

CostModel spread(const UniformCost& cost, const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  const std::vector<std::int32_t> chunk_of = chunk_of_stage(schedule);
  CostModel model;
  model.slices = shape.slices;
  model.message = cost.message;
  const bool per_rank = cost.per == UniformCost::Per::kRank;
  const std::int64_t chunks = per_rank ? shape.chunks : 1;
  const std::int64_t slices = cost.per == UniformCost::Per::kSlice ? 1 : shape.slices;
  const std::int64_t parts = chunks * slices;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (std::int32_t slice = 0; slice < shape.slices; ++slice) {
      const std::int64_t part = (chunk_of[stage] % chunks) * slices + slice % slices;
      const std::int64_t shares = per_rank ? count_shares(schedule, stage) : 1;
      StageCost& part_cost = model.stages.emplace_back();
      part_cost.forward = part_of(combine_shares(shares, cost.forward), parts, part);
      part_cost.backward = part_of(combine_shares(shares, cost.full_backward()), parts, part);
      part_cost.input_grad = part_of(combine_shares(shares, cost.input_grad), parts, part);
      part_cost.weight_grad = part_of(combine_shares(shares, cost.weight_grad), parts, part);
      part_cost.recompute = part_of(
          combine_shares(shares, cost.recompute_of(schedule.recompute(stage))), parts, part);
      part_cost.evict = part_of(combine_shares(shares, cost.copy), parts, part);
      part_cost.load = part_cost.evict;
    }
  if (cost.output_layer > 0 || schedule.side_stages > 0) place_output_layer(model, cost, schedule);
  model.norm = cost.norm;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const std::int64_t shares = per_rank ? count_shares(schedule, stage) : 1;
    const auto part = [&](Nanos share) {
      return schedule.is_side_stage(stage)
                 ? 0
                 : part_of(combine_shares(shares, share), chunks, chunk_of[stage] % chunks);
    };
    const auto& [optimizer, reduce_grad, unshard] = cost.update;
    model.updates.push_back({part(optimizer), part(reduce_grad), part(unshard)});
  }
  return model;
}

namespace {

/// A lookup table for the usual instructions: a Program has many of each kind on each stage.
class PriceTable {
 public:
  PriceTable(const CostModel& costs, std::int32_t ranks)
      : costs_(costs),
        ranks_(ranks),
        same_ops_(costs.by_microbatch.empty()),
        same_messages_(costs.message_between.empty() && costs.messages.empty()),
        by_link_(!costs.message_between.empty() && costs.messages.empty()) {
    for (const StageCost& cost : costs.stages)
      for (const Nanos price : {cost.forward, cost.backward, cost.input_grad, cost.weight_grad,
                                cost.recompute, costs.message, Nanos{0}, costs.message, Nanos{0}})
        prices_.push_back(price);
  }

  Nanos operator()(const Instruction& instruction) const {
    const OpKind kind = instruction.op.kind;
    const bool listed = is_compute(kind) ? same_ops_ : is_send(kind) && same_messages_;
    if (by_link_ && is_send(kind) && instruction.role == Role::kWork)
      return link_duration(costs_, instruction, ranks_);
    if (!listed || instruction.role != Role::kWork) return duration_of(costs_, instruction, ranks_);
    const std::int64_t stage = std::int64_t{instruction.op.stage} * costs_.slices;
    return prices_[static_cast<std::size_t>((stage + instruction.op.slice) * kListed) +
                   static_cast<std::size_t>(kind)];
  }

 private:
  static constexpr std::int64_t kListed = 9;  ///< compute ops and messages

  const CostModel& costs_;
  std::int32_t ranks_;
  bool same_ops_;       ///< all micro-batches take the same times
  bool same_messages_;  ///< all messages do
  bool by_link_;        ///< those of a link do
  std::vector<Nanos> prices_;
};

/// The time of the overlapped pair that an op begins; empty: the sum of its two ops.
std::optional<Nanos> pair_time(const CostModel& costs, const Op& first) {
  return costs.pairs_overlap ? costs.stage_cost(first).overlapped_pair : std::nullopt;
}

}  // namespace

std::vector<Nanos> price(const Program& program, const CostModel& costs) {
  expect_links(program, costs);
  const PriceTable price_of(costs, program.ranks);
  const auto stages = static_cast<std::int64_t>(costs.stages.size()) / costs.slices;
  DurationSum sum;
  std::vector<Nanos> durations(program.instructions.size());
  Nanos* next = durations.data();
  std::vector<Nanos> forward_of_pair(program.ranks, 0);
  std::vector<std::optional<Nanos>> pair(program.ranks);
  for (const Instruction& instruction : program.instructions) {
    const Op& op = instruction.op;
    if (!covers(costs, op, stages)) refuse_op(op, costs);
    Nanos duration = price_of(instruction);
    if (op.pairing == Pairing::kFirst) {
      forward_of_pair[instruction.rank] = duration;
      pair[instruction.rank] = pair_time(costs, op);
    } else if (op.pairing == Pairing::kSecond && pair[instruction.rank]) {
      duration = *pair[instruction.rank] - forward_of_pair[instruction.rank];
    }
    sum.add(duration);
    *next++ = duration;
  }
  if (sum.shortest() < 0) refuse_short_pair(program, durations);
  sum.expect_in_range();
  if (costs.parts.has_pairs) {
    price_pairs(program, costs.parts, durations);
    expect_in_range(durations);
  }
  return durations;
}

namespace {

Nanos byte_time_of(const CostModel& costs, const Instruction& message, std::int32_t ranks) {
  if (!costs.messages.empty()) {
    const MessageCost& cost = costs.messages(message.op);
    return carries_activation(message.op.kind) ? cost.forward_bytes : cost.backward_bytes;
  }
  if (costs.byte_time_between.empty()) return costs.byte_time;
  return costs.byte_time_between[static_cast<std::size_t>(std::int64_t{message.rank} * ranks +
                                                          message.peer)];
}

/// Whether two ops are an overlapped pair whose time is its own, so that both start together.
bool run_together(const CostModel& costs, const Op& first, const Op& second) {
  return second.pairing == Pairing::kSecond && (pair_time(costs, first).has_value() ||
                                                costs.parts.find(key_of(first, second)) != nullptr);
}

}  // namespace

std::vector<Nanos> price_gaps(const Program& program, const CostModel& costs) {
  if (costs.op_gap == 0) return {};
  std::vector<Nanos> gaps(program.size(), 0);
  std::vector<const Op*> last_op(static_cast<std::size_t>(program.ranks), nullptr);
  DurationSum sum;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    if (lane >= static_cast<std::uint32_t>(program.ranks) || role == Role::kPost) continue;
    const bool computes = role == Role::kWork && is_compute(op.kind);
    const Op* const last = last_op[lane];
    const bool follows = last != nullptr && (computes || op.kind == OpKind::kOptimizer);
    if (follows && !run_together(costs, *last, op)) gaps[id] = costs.op_gap;
    last_op[lane] = computes ? &op : nullptr;
    sum.add(gaps[id]);
  }
  sum.expect_in_range();
  return gaps;
}

std::vector<Nanos> price_bytes(const Program& program, const CostModel& costs) {
  std::vector<Nanos> bytes;
  bytes.reserve(program.instructions.size());
  for (const Instruction& instruction : program.instructions) {
    const OpKind kind = instruction.op.kind;
    Nanos time = 0;
    if (kind == OpKind::kEvict || kind == OpKind::kLoad)
      time = duration_of(costs, instruction, program.ranks);
    else if (is_message(instruction))
      time = byte_time_of(costs, instruction, program.ranks);
    bytes.push_back(time);
  }
  return bytes;
}

}  // namespace bubblescope::inline sim
