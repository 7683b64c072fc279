// The state of one stage in a checkpoint, which is the same for weights on the host and on devices:
//
//   weights, updates, Adam's mean and square, gradients, gradients of the last update
//
// Nothing is written for zeros, such as the gradients of a synchronous schedule between steps.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/runtime/blob.h"
#include "exec/training/optimizer.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// The last gradients are empty where the schedule does not keep them. Lists of gradients may be
/// empty, which stands for zeros.
struct StageCheckpoint {
  std::vector<Matrix> weights;
  OptimizerState optimizer;
  std::vector<Matrix> gradients;
  std::vector<Matrix> last_gradients;
};

/// The same without copies.
struct StageCheckpointView {
  const std::vector<Matrix>& weights;
  const OptimizerState& optimizer;
  const std::vector<Matrix>& gradients;
  const std::vector<Matrix>& last_gradients;
};

/// The matrices that a stage must have.
struct StageCheckpointShape {
  struct Size {
    std::int32_t rows = 0;
    std::int32_t columns = 0;
  };
  std::vector<Size> weights;
  bool keeps_last_gradients = false;
  std::int64_t max_updates = 0;  ///< that the training can have made
};

/// Whether a resumed run needs the gradients of the last update: in synchronous schedules every
/// step replaces them.
bool keeps_last_gradients(const Schedule& schedule);

void write_stage(BlobWriter& writer, const StageCheckpointView& stage, bool keeps_last_gradients);

/// Throws Error if the bytes are not the state of such a stage. Zeros are written out.
StageCheckpoint read_stage(BlobReader& reader, const StageCheckpointShape& shape);

}  // namespace bubblescope::exec
