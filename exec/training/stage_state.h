// What a rank holds of a stage while it trains.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "exec/training/held_bytes.h"
#include "exec/training/slices.h"
#include "exec/training/weight_versions.h"

namespace bubblescope {

/// Of a micro-batch, or of a slice of one.
struct MicrobatchState {
  std::optional<Kept> kept;       ///< by the forward, in its rank's memory
  std::optional<Kept> elsewhere;  ///< in the keeper's memory
  bool complete = false;          ///< nothing is left to be made again
  std::optional<WeightWork> work;
  double loss = 0;
  Recompute recompute = Recompute::kNone;
  Bytes held = 0;
};

struct StageState {
  WeightVersions weights;
  std::vector<Matrix> gradients;
  std::vector<Matrix> last_gradients;         ///< those of the last update
  std::vector<MicrobatchState> microbatches;  ///< by Schedule::forward_index; empty: not here
  std::vector<SliceContext> contexts;         ///< per micro-batch, while slices need it

  bool is_here() const { return !microbatches.empty(); }
};

/// A rank's memory of activations. Its rank's lanes take and give back, and those of ranks that
/// evict to it.
class RankMemory {
 public:
  void add(Bytes bytes);
  Bytes peak() const { return peak_; }

 private:
  std::mutex mutex_;
  Bytes held_ = 0;
  Bytes peak_ = 0;
};

}  // namespace bubblescope
