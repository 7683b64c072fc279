// The terms of the closed forms: durations of the ops of one chunk, or of one slice of it.
#pragma once

#include <optional>

#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// In formulas: F, B, I, W and c.
struct ChunkCost {
  Nanos forward = 0;
  Nanos backward = 0;  ///< the full backward
  Nanos input_grad = 0;
  Nanos weight_grad = 0;
  Nanos message = 0;  ///< one message between two ranks; 0 for one rank
};

/// Returns max(time, 0), which the formulas write as [x]+.
inline Nanos clamp_to_zero(Nanos time) { return time > 0 ? time : 0; }

/// A request's uniform costs per chunk and slice. Empty if a rank's share does not divide evenly
/// into them: then stages differ, and the closed forms for uniform stages do not hold.
std::optional<ChunkCost> chunk_cost(const ScheduleRequest& request);

}  // namespace bubblescope::schedules
