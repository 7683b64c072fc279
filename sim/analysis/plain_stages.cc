// Finds what the stages of a chain read, and from where.
#include "sim/analysis/plain_stages.h"

#include <algorithm>

#include "sim/ir/needs.h"

namespace bubblescope::inline sim {

namespace {

/// The first micro-batch that Schedule::pipeline_of_microbatch() gives to a pipeline, or to a later
/// one.
std::int32_t first_of_pipeline(const Schedule& schedule, std::int64_t pipeline) {
  const std::int64_t pipelines = schedule.pipelines;
  const std::int64_t microbatches = schedule.shape.microbatches;
  return static_cast<std::int32_t>((pipeline * microbatches + pipelines - 1) / pipelines);
}

}  // namespace

bool has_plain_frame(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  const bool has_plain_shape = shape.ranks > 0 && shape.microbatches > 0 && shape.slices == 1 &&
                               schedule.order.size() == static_cast<std::size_t>(shape.ranks) &&
                               schedule.stages() > 0 && schedule.pipelines > 0 &&
                               schedule.stages() % schedule.pipelines == 0;
  const bool has_plain_ops = !schedule.forward_only && schedule.replicas_of_stage.empty() &&
                             schedule.turns_of_stage.empty() && schedule.fused_forwards == 1 &&
                             schedule.offload_target_of_rank.empty() && schedule.weights.empty() &&
                             schedule.recompute_of_stage.empty() && schedule.posted.empty() &&
                             schedule.side_stages == 0 && schedule.graph.is_chain() &&
                             schedule.after.empty();
  return has_plain_shape && has_plain_ops &&
         std::all_of(schedule.rank_of_stage.begin(), schedule.rank_of_stage.end(),
                     [&](std::int32_t rank) { return rank >= 0 && rank < shape.ranks; }) &&
         schedule.op_count() / 2 >=
             std::int64_t{schedule.stages_per_pipeline()} * shape.microbatches;
}

std::vector<PlainStage> list_plain_stages(const Schedule& schedule) {
  const auto row = static_cast<std::size_t>(schedule.shape.microbatches);
  std::vector<PlainStage> stages(schedule.rank_of_stage.size());
  for (std::size_t at = 0; at < stages.size(); ++at) {
    PlainStage& stage = stages[at];
    const auto number = static_cast<std::int32_t>(at);
    const std::int64_t pipeline = number / schedule.stages_per_pipeline();
    stage.rank = schedule.rank_of_stage[at];
    stage.first_microbatch = first_of_pipeline(schedule, pipeline);
    stage.end_microbatch = first_of_pipeline(schedule, pipeline + 1);
    stage.own = at * row;
    stage.input = stage.reader = stages.size() * row;
    const auto connect = [&](std::int32_t other, std::size_t& values, bool& receives) {
      values = static_cast<std::size_t>(other) * row;
      receives = schedule.rank_of_stage[static_cast<std::size_t>(other)] != stage.rank;
    };
    for_each_input(schedule, number,
                   [&](std::int32_t other) { connect(other, stage.input, stage.receives_input); });
    for_each_reader(schedule, number, [&](std::int32_t other) {
      connect(other, stage.reader, stage.receives_gradients);
    });
  }
  return stages;
}

}  // namespace bubblescope::inline sim
