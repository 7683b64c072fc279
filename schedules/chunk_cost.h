// What closed forms are made of: the durations of the ops of one chunk, or one slice of it.
#pragma once

#include <optional>

#include "sim/model/schedule_def.h"

namespace bubblescope {

/// In formulas: F, B, I, W and c.
struct ChunkCost {
  Nanos forward = 0;
  Nanos backward = 0;  ///< the full backward
  Nanos input_grad = 0;
  Nanos weight_grad = 0;
  Nanos message = 0;  ///< one message between two ranks; 0 where there is one rank
};

/// [x]+ in formulas: a wait that is not there does not save time.
inline Nanos at_least_zero(Nanos time) { return time > 0 ? time : 0; }

/// The uniform costs of a request, per chunk and slice. Empty where a rank's share does not divide
/// evenly into them: then its stages differ, and closed forms for uniform stages do not hold.
std::optional<ChunkCost> chunk_cost(const ScheduleRequest& request);

}  // namespace bubblescope
