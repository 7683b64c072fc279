// A Schedule: for each rank the order of its compute ops, and which rank holds which stage. It has
// no times and no messages. For example 1F1B on two ranks:  0F0 0F1 0B0 0B1  and  1F0 1B0 1F1 1B1
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/placement.h"
#include "sim/ir/recompute_scope.h"
#include "sim/ir/shape.h"
#include "sim/ir/stage_graph.h"
#include "sim/ir/weight_use.h"

namespace bubblescope::inline sim {

/// The ops of one rank, in the order in which it runs them.
using RankOrder = std::vector<Op>;

/// Stages are numbered along the model. If a schedule runs several pipelines (a bidirectional one
/// has two), the second pipeline's replicas of the stages follow the first's.
struct Schedule {
  std::string name;
  Shape shape;
  std::int32_t pipelines = 1;               ///< 2 for bidirectional schedules
  bool forward_only = false;                ///< inference: there are no backwards
  std::vector<std::int32_t> rank_of_stage;  ///< the placement: one entry per stage
  /// The number of consecutive ranks, starting at rank_of_stage, that share a stage: replica i mod
  /// r runs the forward and the backward of micro-batch i. Empty: every stage is on one rank.
  std::vector<std::int32_t> replicas_of_stage;
  /// [stage], where replicas are those of whole pipelines, a data-parallel job: replica turns[i mod
  /// size] of the stage runs micro-batch i. Empty: replica i mod r.
  std::vector<std::vector<std::int32_t>> turns_of_stage;
  /// How many forwards of a stage are fused into one, counted over micro-batches and their slices:
  /// they are adjacent in the order, and their results are available when the last of them ends.
  std::int32_t fused_forwards = 1;
  /// [rank]: compute ops and copies. A copy does not run in the compute lane: the ops after an
  /// EVICT wait for its end, because they need the memory; a LOAD may begin at its position.
  std::vector<RankOrder> order;
  /// [rank]: its offload target, the rank whose memory holds what this rank evicts; the rank itself
  /// means the host's memory. Empty: nothing is evicted.
  std::vector<std::int32_t> offload_target_of_rank;
  /// [rank], parallel to `order`, for asynchronous training. Empty: all ops of a step read the same
  /// weights.
  std::vector<std::vector<WeightUse>> weights;
  /// [stage]: what its R recomputes. Empty: every R recomputes the whole forward.
  std::vector<Recompute> recompute_of_stage;
  /// [rank]: the posted lists: compute ops, messages, collectives and idle cells. Empty if `order`
  /// says everything.
  std::vector<RankOrder> posted;
  /// The number of side stages, the last ones of the placement, which are not part of the chain.
  /// Each runs every micro-batch. Vocabulary parallelism has one per rank: a shard of the output
  /// layer.
  std::int32_t side_stages = 0;
  /// The data flow between stages. In a chain none flows between side stages and others.
  StageGraph graph;
  /// Ops may wait for others beyond the data flow and their rank's order. Such an edge carries no
  /// data, is not posted and takes no time.
  std::vector<AfterEdge> after;

  std::int32_t stages() const { return static_cast<std::int32_t>(rank_of_stage.size()); }
  std::int32_t replicas(std::int32_t stage) const {
    return replicas_of_stage.empty() ? 1 : replicas_of_stage[stage];
  }
  /// Whether the replicas of a stage are those of whole pipelines, each with all its layers.
  bool is_data_parallel() const { return !turns_of_stage.empty(); }
  /// Returns the replica of a stage that runs a micro-batch.
  std::int32_t replica_of(std::int32_t stage, std::int32_t microbatch) const {
    if (!is_data_parallel()) return microbatch % replicas(stage);
    const std::vector<std::int32_t>& turns = turns_of_stage[stage];
    return turns[static_cast<std::size_t>(microbatch) % turns.size()];
  }
  /// Returns the rank that runs a micro-batch's ops on a stage.
  std::int32_t rank_of(std::int32_t stage, std::int32_t microbatch) const {
    if (replicas_of_stage.empty()) return rank_of_stage[stage];
    return rank_of_stage[stage] + replica_of(stage, microbatch);
  }
  Recompute recompute(std::int32_t stage) const {
    return recompute_of_stage.empty() ? Recompute::kFull : recompute_of_stage[stage];
  }
  std::int32_t stages_per_pipeline() const { return stages() / pipelines; }
  /// Whether a stage, or the end of the placement, is after the chain.
  bool is_side_stage(std::int32_t stage) const { return stage >= stages() - side_stages; }
  /// Whether the model begins at a stage: it reads no other.
  bool is_first(std::int32_t stage) const {
    if (!graph.is_chain()) return graph.inputs(stage).empty();
    return stage % stages_per_pipeline() == 0 || is_side_stage(stage);
  }
  /// Whether the model ends at a stage: no other reads it.
  bool is_last(std::int32_t stage) const {
    if (!graph.is_chain()) return graph.readers(stage).empty();
    return (stage + 1) % stages_per_pipeline() == 0 || is_side_stage(stage + 1);
  }
  /// The pipeline of a micro-batch. Each gets an equal, contiguous range of them: the first half
  /// goes through the first of two pipelines.
  std::int32_t pipeline_of_microbatch(std::int32_t microbatch) const {
    return static_cast<std::int32_t>(std::int64_t{microbatch} * pipelines / shape.microbatches);
  }
  /// Returns the index of an op's forward on its stage, over micro-batches and their slices.
  std::int64_t forward_index(const Op& op) const {
    return std::int64_t{op.microbatch} * shape.slices + op.slice;
  }
  std::int64_t op_count() const;

  bool operator==(const Schedule&) const = default;
};

/// Whether `posted` states where messages are sent and received, not only where a rank idles.
bool posts_messages(const Schedule& schedule);

/// Returns the index of each stage among the stages of its rank, in stage order.
std::vector<std::int32_t> chunk_of_stage(const Schedule& schedule);

}  // namespace bubblescope::inline sim
