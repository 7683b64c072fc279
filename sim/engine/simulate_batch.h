// The dataflow pass for 16 scenarios at once.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/batch.h"
#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

/// The durations of an instruction in every scenario of a batch, in whole nanoseconds. Their sum
/// must stay below kMaxBatchTime.
using BatchDurations = std::function<Batch(InstructionId)>;

/// Runs one Program any number of times. Refers to it and to the gaps (see price_gaps(); empty:
/// none), which are the same in all scenarios.
class BatchSimulator {
 public:
  explicit BatchSimulator(const Program& program, std::span<const Nanos> gaps = {});

  /// Returns the makespan of every scenario.
  Batch run(const BatchDurations& durations);

 private:
  const Program& program_;
  std::span<const Nanos> gaps_;
  std::vector<std::uint32_t>
      slot_of_;  ///< per instruction: where its end is stored until all dependents have read it
  std::vector<Batch> end_;       ///< per slot: few, so that they stay in the cache
  std::vector<Batch> lane_end_;  ///< per lane
};

/// The makespans of `scenarios` scenarios; `batch(n)` gives the durations of scenarios 16 n to 16 n
/// + 15.
std::vector<Nanos> simulate_batches(const Program& program, std::size_t scenarios,
                                    const std::function<BatchDurations(std::size_t)>& batch,
                                    std::span<const Nanos> gaps = {});

/// The same for messages that share resources: the durations replace Traffic::fixed, `lengths` are
/// factors of the flows' loads (empty: 1), and scenarios run one by one.
std::vector<Nanos> simulate_batches(const Program& program, const Traffic& traffic,
                                    std::size_t scenarios,
                                    const std::function<BatchDurations(std::size_t)>& batch,
                                    const std::function<BatchDurations(std::size_t)>& lengths = {},
                                    std::span<const Nanos> gaps = {});

}  // namespace bubblescope::inline sim
