// A Schedule: per rank, the order of compute ops, and which rank holds which stage. No time, no
// messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/placement.h"

namespace bubblescope {

/// The most ranks that a pipeline may have, so that a mistyped number is an error and not a hang.
inline constexpr std::int32_t kMaxRanks = 65'536;

/// How large a pipeline is. In formulas: p = ranks, v = chunks, m = microbatches, n = slices.
struct Shape {
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;  ///< stages that one micro-batch crosses on one rank
  std::int32_t microbatches = 1;
  std::int32_t slices = 1;                 ///< cuts of a sequence
  std::optional<std::int32_t> group_size;  ///< micro-batches per virtual-stage group (interleaved)

  bool operator==(const Shape&) const = default;
};

/// The ops of one rank, in the order in which it runs them.
using RankOrder = std::vector<Op>;

/// Which version of its stage's weights an op uses. Version 0 is there at the start; each update
/// makes the next one.
struct WeightUse {
  std::int32_t read = 0;
  std::optional<std::int32_t> written;  ///< by a backward that ends with an update

  bool operator==(const WeightUse&) const = default;
};

/// What a stage makes again before its backward instead of keeping it.
enum class Recompute : std::uint8_t {
  kNone,       ///< nothing: the forward keeps its activations
  kSelective,  ///< the core of attention, which is large and cheap to make again
  kFull,       ///< everything, from the stage's input
};

/// "none", "selective", "full".
std::string_view name(Recompute recompute);

/// Stages are numbered along the model; where a schedule runs several pipelines (a bidirectional
/// one has two), the second pipeline's replicas of the stages follow the first's.
struct Schedule {
  std::string name;
  Shape shape;
  std::int32_t pipelines = 1;               ///< 2 for bidirectional schedules
  bool forward_only = false;                ///< inference: no backward is expected
  std::vector<std::int32_t> rank_of_stage;  ///< the placement: one entry per stage
  /// How many consecutive ranks, from rank_of_stage on, share a stage: micro-batch i is replica
  /// i mod r's, forward and backward. Empty: every stage is on one rank.
  std::vector<std::int32_t> replicas_of_stage;
  /// How many forwards of a stage run as one, counted over micro-batches and their slices: they
  /// stand side by side, and what they make is there when the last of them ends.
  std::int32_t joint_forwards = 1;
  /// [rank], compute ops and copies. A copy takes no place among the compute ops: an EVICT stands
  /// where its memory must be free (the ops behind it wait for its end), a LOAD where it may begin.
  std::vector<RankOrder> order;
  /// [rank]: the rank whose memory keeps what this one evicts; itself: the host's memory. Empty:
  /// nothing is evicted.
  std::vector<std::int32_t> keeper_of_rank;
  /// [rank], parallel to `order`, where training is asynchronous. Empty: all ops of a step read the
  /// same weights.
  std::vector<std::vector<WeightUse>> weights;
  /// [stage]: what R makes again. Empty: wherever an R stands, it makes everything again.
  std::vector<Recompute> recompute_of_stage;
  /// [rank], the cells as a file wrote them: computes, messages, idle slots. Empty where `order`
  /// says all there is.
  std::vector<RankOrder> posted;

  std::int32_t stages() const { return static_cast<std::int32_t>(rank_of_stage.size()); }
  std::int32_t replicas(std::int32_t stage) const {
    return replicas_of_stage.empty() ? 1 : replicas_of_stage[stage];
  }
  /// The rank that runs a micro-batch's ops on a stage.
  std::int32_t rank_of(std::int32_t stage, std::int32_t microbatch) const {
    if (replicas_of_stage.empty()) return rank_of_stage[stage];
    return rank_of_stage[stage] + microbatch % replicas_of_stage[stage];
  }
  Recompute recompute(std::int32_t stage) const {
    return recompute_of_stage.empty() ? Recompute::kFull : recompute_of_stage[stage];
  }
  std::int32_t stages_per_pipeline() const { return stages() / pipelines; }
  bool is_first(std::int32_t stage) const { return stage % stages_per_pipeline() == 0; }
  bool is_last(std::int32_t stage) const { return is_first(stage + 1); }
  /// Micro-batches are dealt to pipelines in equal runs: the first half goes through the first.
  std::int32_t pipeline_of_microbatch(std::int32_t microbatch) const {
    return static_cast<std::int32_t>(std::int64_t{microbatch} * pipelines / shape.microbatches);
  }
  /// Which forward of its stage an op's is, counted over micro-batches and their slices.
  std::int64_t forward_index(const Op& op) const {
    return std::int64_t{op.microbatch} * shape.slices + op.slice;
  }
  std::int64_t op_count() const;

  bool operator==(const Schedule&) const = default;
};

/// Whether `posted` says where messages are sent and received, not only where a rank idles.
bool posts_messages(const Schedule& schedule);

/// Which of its rank's stages a stage is, counted in stage order from 0.
std::vector<std::int32_t> chunk_of_stage(const Schedule& schedule);

/// Puts the two ops of an overlapped pair at the end of an order, marked as one.
void append_pair(RankOrder& order, Op first, Op second);

}  // namespace bubblescope
