// Replicas of stages: where several ranks share a stage, each of them holds its weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// The index of one replica of a stage, on one rank.
using StageReplica = std::size_t;

/// All replicas, sorted by stage and then rank. Refers to the schedule.
class StageReplicas {
 public:
  explicit StageReplicas(const Schedule& schedule);

  std::size_t size() const { return places_.size(); }
  std::int32_t stage(StageReplica replica) const { return places_[replica].stage; }
  std::int32_t rank(StageReplica replica) const { return places_[replica].rank; }

  /// Returns the replica that runs an op of a micro-batch.
  StageReplica find(const Op& op) const {
    return first(op.stage) +
           static_cast<StageReplica>(schedule_.replica_of(op.stage, op.microbatch));
  }
  /// Returns the replica of a stage on a rank, for instructions that concern the whole stage.
  StageReplica find(std::int32_t stage, std::int32_t rank) const {
    return first(stage) + static_cast<StageReplica>(rank - places_[first(stage)].rank);
  }
  /// The replica on the stage's first rank; those on its other ranks follow.
  StageReplica first(std::int32_t stage) const { return first_[static_cast<std::size_t>(stage)]; }

  /// Returns for each stage of the model all replicas of its weights, over all pipelines.
  const std::vector<std::vector<StageReplica>>& sharing() const { return sharing_; }
  const std::vector<StageReplica>& sharing(StageReplica replica) const {
    return sharing_[static_cast<std::size_t>(stage(replica)) % sharing_.size()];
  }

 private:
  struct Place {
    std::int32_t stage = 0;
    std::int32_t rank = 0;
  };

  const Schedule& schedule_;
  std::vector<Place> places_;
  std::vector<StageReplica> first_;  ///< [stage]
  std::vector<std::vector<StageReplica>> sharing_;
};

}  // namespace bubblescope::exec
