// The weight versions of one stage during a step. Asynchronous schedules update within a step,
// while older micro-batches still need the weights with which they began.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/training/optimizer.h"
#include "exec/training/stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// [stage][microbatch]: the version of the stage's weights that the micro-batch reads, and the one
/// that its backward makes. In a synchronous schedule all read version 0 and make none.
std::vector<std::vector<WeightUse>> weight_uses(const Schedule& schedule);

/// Returns the weight of a micro-batch's gradients: 1 / (micro-batches per update of stage 0).
float gradient_scale(const Schedule& schedule);

/// [stage]: the factor for gradients before an update; it differs from 1 if the replicas of a stage
/// update after another number of micro-batches than stage 0.
std::vector<float> update_scales(const Schedule& schedule);

/// Versions are numbered from 0 in every step. A version is kept while micro-batches still read it.
class WeightVersions {
 public:
  WeightVersions() = default;

  /// `uses` lists the micro-batches of this replica.
  WeightVersions(Stage initial, std::vector<WeightUse> uses);

  const Stage& newest() const { return versions_.rbegin()->second; }

  /// Throws Error if the version does not exist yet, or no longer.
  const Stage& read(std::int32_t version, const Op& reader) const;

  /// Tells that a micro-batch that read this version does not need it any more.
  void release(std::int32_t version);

  /// Makes the next version from the newest one.
  void update(const std::vector<Matrix>& gradients, const OptimizerOptions& options);

  /// Renumbers the newest version as version 0.
  void begin_step();

  const OptimizerState& optimizer() const { return optimizer_; }

  /// Replaces the weights and the optimizer's state between two steps.
  void restore(std::vector<Matrix> weights, OptimizerState optimizer);

 private:
  void drop_unread();

  std::vector<WeightUse> uses_;
  std::map<std::int32_t, Stage> versions_;
  std::vector<std::int32_t> readers_;  ///< [version]: micro-batches that still need it
  OptimizerState optimizer_;
};

}  // namespace bubblescope::exec
