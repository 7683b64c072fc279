// Why a job's steps take as long as they do, ranked by what mending each cause would save.
//
// A cause is mended in a replay of every measured step: its ops take other durations, all others
// keep theirs, and the step ends with the slowest of its data-parallel replicas. Work is conserved
// wherever it can only be moved:
//   worker            its ops get faster by what its stage's median is above that of the same stage
//                     in the other replicas; nothing tells a slow rank from a large stage where
//                     there is one replica
//   stage             an op takes the mean of its kind and micro-batch over all stages
//   sequence lengths  an op takes the mean of its stage and kind over all micro-batches of all
//                     replicas; a cause only where forwards and backwards of a micro-batch grow
//                     together
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/analysis/slowdown.h"

namespace bubblescope::inline sim {

enum class CauseKind : std::uint8_t { kWorker, kStage, kSequenceLengths };

struct Cause {
  CauseKind kind = CauseKind::kStage;
  std::int32_t replica = 0;  ///< of a worker, counted from 0
  std::int32_t rank = 0;     ///< of a worker or stage
  std::int32_t stage = 0;    ///< of the stage with the most work
  /// How much slower the worker is than its stage elsewhere, how much more work the stage has than
  /// the mean stage, or the correlation of forwards and backwards.
  double factor = 1;
  std::int64_t steps = 0;  ///< in how many steps the worker was over 2 % slower
  Nanos saves = 0;         ///< of the mean step, above 0
};

struct CauseReport {
  Nanos replayed = 0;         ///< mean time of the steps' replays, to which `saves` refer
  std::vector<Cause> causes;  ///< what saves most comes first
  /// False where the trace does not say how long messages travel, so that no cause can be told.
  bool is_known = true;
};

/// There is at least one step; all have as many replicas, which run the same stages.
CauseReport find_causes(std::span<const ReplicatedStep> steps);

}  // namespace bubblescope::inline sim
