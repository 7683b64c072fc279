// The weights of one stage while a schedule trains it. Asynchronous schedules update within a step,
// while older micro-batches still need the weights that they began with.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "exec/training/optimizer.h"
#include "exec/training/stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// [stage][microbatch]: which version of the stage's weights the micro-batch uses, and which its
/// backward makes. In a synchronous schedule all use version 0 and make none.
std::vector<std::vector<WeightUse>> weight_uses(const Schedule& schedule);

/// By how much a micro-batch's gradients count: 1 / (micro-batches of an update of stage 0).
float gradient_scale(const Schedule& schedule);

/// [stage]: what gradients are multiplied with before an update; not 1 where replicas make another
/// number of micro-batches count than on stage 0.
std::vector<float> update_scales(const Schedule& schedule);

/// Versions are counted from 0 in every step. One is kept for as long as it is read.
class WeightVersions {
 public:
  WeightVersions() = default;

  /// `uses` are those of the micro-batches that come here.
  WeightVersions(Stage initial, std::vector<WeightUse> uses);

  const Stage& newest() const { return versions_.rbegin()->second; }

  /// Throws Error where there is no such version yet, or no more.
  const Stage& read(std::int32_t version, const Op& reader) const;

  /// A micro-batch, which read this version, needs it no more.
  void let_go(std::int32_t version);

  /// Makes the next version from the newest one.
  void update(const std::vector<Matrix>& gradients, const OptimizerOptions& options);

  /// The newest version becomes version 0.
  void begin_step();

 private:
  void drop_unread();

  std::vector<WeightUse> uses_;
  std::map<std::int32_t, Stage> versions_;
  std::vector<std::int32_t> readers_;  ///< [version]: micro-batches that still need it
  OptimizerState optimizer_;
};

}  // namespace bubblescope
