// Serial references of several runs. Schedules that train the same micro-batches with the same
// weight versions have one reference, so a comparison of them trains it once.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "exec/training/serial_training.h"
#include "exec/training/weight_versions.h"

namespace bubblescope::exec {

class SerialReferences {
 public:
  /// Trains as train_serially() does, unless an equal run is known. All calls must have equal
  /// options. The result is valid until the next call.
  const TrainingResult& find(const Schedule& schedule, const TrainingOptions& options,
                             std::int32_t steps);

 private:
  /// Everything of a schedule on which its serial run depends.
  struct Key {
    std::int32_t stages = 0;
    std::int32_t microbatches = 0;
    std::int32_t steps = 0;
    bool forward_only = false;
    bool updates_within_step = false;
    float gradient_scale = 1;
    std::vector<float> update_scales;
    std::vector<std::vector<WeightUse>> uses;
    StageGraph graph;

    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    TrainingResult result;
  };

  std::deque<Entry> known_;  ///< the latest ones; each holds several copies of the weights
};

}  // namespace bubblescope::exec
