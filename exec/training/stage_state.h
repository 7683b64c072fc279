// The state that a rank holds of a stage during training.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "exec/training/held_bytes.h"
#include "exec/training/slices.h"
#include "exec/training/weight_versions.h"

namespace bubblescope::exec {

/// The state of a micro-batch, or of one of its slices.
struct MicrobatchState {
  std::optional<SavedForward> kept;       ///< saved by the forward, in the rank's memory
  std::optional<SavedForward> offloaded;  ///< offloaded
  bool complete = false;                  ///< nothing needs recomputing
  std::optional<WeightWork> work;
  double loss = 0;
  Recompute recompute = Recompute::kNone;
  Bytes held = 0;
};

struct StageState {
  WeightVersions weights;
  std::vector<Matrix> gradients;
  std::vector<Matrix> last_gradients;         ///< of the last update
  std::vector<MicrobatchState> microbatches;  ///< by forward_index; empty: not here
  std::vector<SliceContext> contexts;         ///< [microbatch]; empty once no slice needs it

  bool is_here() const { return !microbatches.empty(); }
};

/// Counts the activation memory of a rank. The rank's lanes change it, and those of ranks that
/// offload to it.
class RankMemory {
 public:
  void add(Bytes bytes);
  Bytes peak() const { return peak_; }

 private:
  std::mutex mutex_;
  Bytes held_ = 0;
  Bytes peak_ = 0;
};

}  // namespace bubblescope::exec
