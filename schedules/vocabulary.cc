// Builds shards, barriers and steady orders.
#include "schedules/vocabulary.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "schedules/chunk_cost.h"

namespace bubblescope::schedules {

/// Only the ratio of the two times matters. They are made small, because they are multiplied by
/// numbers of micro-batches.
PassOrder::PassOrder(const ScheduleRequest& request) : chain_(request.shape.ranks) {
  constexpr std::int64_t kMaxTime = std::int64_t{1} << 20;
  std::int64_t forward = request.cost.forward;
  std::int64_t backward = request.cost.full_backward();
  if (request.stage_costs) {
    forward = backward = 0;
    for (std::int32_t stage = 0; stage < chain_; ++stage) {
      const StageCost& cost = request.stage_costs->stage_cost({stage, 0});
      forward += cost.forward / chain_;
      backward += cost.backward / chain_;
    }
  }
  while (std::max(forward, backward) > kMaxTime) {
    forward /= 2;
    backward /= 2;
  }
  forward_ = std::max<std::int64_t>(forward, 1);
  backward_ = std::max<std::int64_t>(backward, 1);
}

void PassOrder::add(const Op& op, const Offset& offset) {
  const std::int64_t interval = op.microbatch + offset.intervals;
  const bool starts = op.kind == OpKind::kForward || op.kind == OpKind::kInputGrad;
  const int of_shard = starts ? 1 : 2;
  const int of_chain = starts ? 0 : 3;
  ops_.push_back({interval * (forward_ + backward_) + offset.forwards * forward_ +
                      offset.backwards * backward_,
                  2 * interval + offset.outputs, op.stage < chain_ ? of_chain : of_shard, op});
}

RankOrder PassOrder::take() {
  std::vector<TimedOp> ops = std::exchange(ops_, {});
  std::stable_sort(ops.begin(), ops.end(), [](const TimedOp& left, const TimedOp& right) {
    return std::tie(left.time, left.outputs, left.turn) <
           std::tie(right.time, right.outputs, right.turn);
  });
  RankOrder order;
  for (const TimedOp& each : ops) order.push_back(each.op);
  return order;
}

std::vector<std::string> refuse_many_barriers(const ScheduleRequest& request) {
  constexpr std::int64_t kMaxEdges = std::int64_t{1} << 24;
  const std::int64_t ranks = request.shape.ranks;
  if (ranks * ranks <= kMaxEdges / request.shape.microbatches) return {};
  return {"every shard waits for every other: `pp` squared times `microbatches` must be at most " +
          std::to_string(kMaxEdges)};
}

namespace {

/// A chain of stages, whose last one every shard reads.
StageGraph connect_shards(std::int32_t chain, std::int32_t shards) {
  StageLists inputs(1);
  for (std::int32_t stage = 1; stage < chain + shards; ++stage)
    inputs.push_back({std::min(stage, chain) - 1});
  return StageGraph(std::move(inputs));
}

/// Each shard's second pass waits for the first passes of all others.
void add_barrier(Schedule& schedule, const ShardBarrier& barrier, std::int32_t microbatch) {
  const std::int32_t chain = schedule.stages() - schedule.side_stages;
  for (std::int32_t stage = chain; stage < schedule.stages(); ++stage)
    for (std::int32_t other = chain; other < schedule.stages(); ++other)
      if (other != stage)
        schedule.after.push_back({{stage, microbatch, 0, barrier.second, Pairing::kAlone},
                                  {other, microbatch, 0, barrier.first, Pairing::kAlone}});
}

}  // namespace

Schedule place_shards(const ScheduleRequest& request, const std::vector<std::int32_t>& chain,
                      const ShardBarrier& barrier) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = chain;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) schedule.rank_of_stage.push_back(rank);
  schedule.side_stages = shape.ranks;
  schedule.graph = connect_shards(static_cast<std::int32_t>(chain.size()), shape.ranks);
  for (std::int32_t at = 0; at < shape.microbatches; ++at) add_barrier(schedule, barrier, at);
  return schedule;
}

Schedule build_sharded(const ScheduleRequest& request,
                       const std::function<void(PassOrder& order, std::int32_t rank,
                                                std::int32_t microbatch)>& add_ops,
                       const ShardBarrier& barrier) {
  const Shape& shape = request.shape;
  Schedule schedule = place_shards(request, loop_placement(shape.ranks, 1), barrier);
  PassOrder order(request);
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank) {
    for (std::int32_t at = 0; at < shape.microbatches; ++at) add_ops(order, rank, at);
    schedule.order.push_back(order.take());
  }
  return schedule;
}

std::optional<Nanos> find_closed_form_gemm_time(const ScheduleRequest& request) {
  const std::optional<ChunkCost> cost = chunk_cost(request);
  const Nanos ranks = request.shape.ranks;
  if (!cost || cost->backward != 2 * cost->forward || cost->message > 0) return {};
  if (request.cost.output_layer % ranks != 0) return {};
  return request.cost.output_layer / ranks;
}

}  // namespace bubblescope::schedules
