// Replicas of stages: where several ranks share a stage, each of them holds its weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope {

/// The index of one replica of a stage, on one rank.
using Home = std::size_t;

/// All replicas, sorted by stage and then rank.
class Homes {
 public:
  explicit Homes(const Schedule& schedule);

  std::size_t size() const { return places_.size(); }
  std::int32_t stage(Home home) const { return places_[home].stage; }
  std::int32_t rank(Home home) const { return places_[home].rank; }

  /// The replica that runs an op of a micro-batch.
  Home find(const Op& op) const {
    return first(op.stage) + static_cast<Home>(op.microbatch % replicas(op.stage));
  }
  /// The replica of a stage on a rank, for instructions that concern the whole stage.
  Home find(std::int32_t stage, std::int32_t rank) const {
    return first(stage) + static_cast<Home>(rank - places_[first(stage)].rank);
  }
  /// The replica on the stage's first rank; those on its other ranks follow.
  Home first(std::int32_t stage) const { return first_[static_cast<std::size_t>(stage)]; }

  /// [stage of the model]: all replicas of its weights, over all pipelines.
  const std::vector<std::vector<Home>>& sharing() const { return sharing_; }
  const std::vector<Home>& sharing(Home home) const {
    return sharing_[static_cast<std::size_t>(stage(home)) % sharing_.size()];
  }

 private:
  struct Place {
    std::int32_t stage = 0;
    std::int32_t rank = 0;
  };

  std::int32_t replicas(std::int32_t stage) const {
    const auto next = static_cast<std::size_t>(stage) + 1;
    const Home end = next < first_.size() ? first_[next] : places_.size();
    return static_cast<std::int32_t>(end - first(stage));
  }

  std::vector<Place> places_;
  std::vector<Home> first_;  ///< [stage]
  std::vector<std::vector<Home>> sharing_;
};

}  // namespace bubblescope
