// From costs to the duration of every instruction.
#include "sim/model/cost_model.h"

#include <string>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

Nanos compute_duration(const StageCost& cost, OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return cost.forward;
    case OpKind::kBackward: return cost.backward;
    case OpKind::kInputGrad: return cost.input_grad;
    case OpKind::kWeightGrad: return cost.weight_grad;
    case OpKind::kRecompute: return cost.recompute;
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kIdle: return 0;
  }
  return 0;
}

void expect_cover(const Program& program, const CostModel& costs) {
  const std::size_t links = static_cast<std::size_t>(program.ranks) * program.ranks;
  if (!costs.message_between.empty() && costs.message_between.size() != links)
    throw Error("the links give " + std::to_string(costs.message_between.size()) + " times for " +
                std::to_string(links) + " pairs of ranks; give one for each");
  for (const Instruction& instruction : program.instructions)
    if (instruction.op.slice >= costs.slices || instruction.op.stage * std::int64_t{costs.slices} >=
                                                    static_cast<std::int64_t>(costs.stages.size()))
      throw Error("stage " + std::to_string(instruction.op.stage) + " has no cost (" +
                  std::to_string(costs.stages.size()) + " stages have); add it to /stages");
}

/// Durations are added up by whoever reads them: the sum must be a time.
void expect_finite_step(const std::vector<Nanos>& durations) {
  constexpr Nanos kLongest = Nanos{1} << 60;  // 36 years
  Nanos sum = 0;
  for (const Nanos duration : durations) {
    if (duration < 0) throw Error("an overlapped pair is shorter than its forward; make it longer");
    if (duration > kLongest - sum)
      throw Error("all ops together take longer than 36 years; ask for shorter times or fewer ops");
    sum += duration;
  }
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
      const std::int64_t shares = per_rank ? schedule.replicas(stage) : 1;
      StageCost& part_cost = model.stages.emplace_back();
      part_cost.forward = part_of(shares * cost.forward, parts, part);
      part_cost.backward = part_of(shares * cost.full_backward(), parts, part);
      part_cost.input_grad = part_of(shares * cost.input_grad, parts, part);
      part_cost.weight_grad = part_of(shares * cost.weight_grad, parts, part);
      part_cost.recompute = part_cost.forward;
    }
  return model;
}

std::vector<Nanos> price(const Program& program, const CostModel& costs) {
  expect_cover(program, costs);
  std::vector<Nanos> durations;
  durations.reserve(program.instructions.size());
  std::vector<Nanos> forward_of_pair(program.ranks, 0);
  std::vector<std::optional<Nanos>> pair(program.ranks);
  for (const Instruction& instruction : program.instructions) {
    const Op& op = instruction.op;
    if (is_message(instruction)) {
      const std::size_t link = static_cast<std::size_t>(
          std::int64_t{instruction.rank} * program.ranks + instruction.peer);
      durations.push_back(costs.message_between.empty() ? costs.message
                                                        : costs.message_between[link]);
      continue;
    }
    const StageCost& cost = costs.stage_cost(op);
    Nanos duration = compute_duration(cost, op.kind);
    if (op.pairing == Pairing::kFirst) {
      forward_of_pair[instruction.rank] = duration;
      pair[instruction.rank] = cost.overlapped_pair;
    } else if (op.pairing == Pairing::kSecond && pair[instruction.rank]) {
      duration = *pair[instruction.rank] - forward_of_pair[instruction.rank];
    }
    durations.push_back(duration);
  }
  expect_finite_step(durations);
  return durations;
}

}  // namespace bubblescope
