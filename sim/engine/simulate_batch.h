// The dataflow pass, 16 scenarios wide.
#pragma once

#include <functional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/batch.h"
#include "sim/model/traffic.h"

namespace bubblescope {

/// The durations of an instruction in every scenario of a batch: whole nanoseconds, that all
/// together stay below kLongestBatchTime.
using BatchDurations = std::function<Batch(InstructionId)>;

/// Times one Program as often as wanted. Refers to it.
class BatchSimulator {
 public:
  explicit BatchSimulator(const Program& program);

  /// Makespans.
  Batch run(const BatchDurations& durations);

 private:
  const Program& program_;
  std::vector<std::uint32_t>
      slot_of_;                  ///< per instruction: where its end is until all have read it
  std::vector<Batch> end_;       ///< per slot: few, so that they stay in the cache
  std::vector<Batch> lane_end_;  ///< per lane
};

/// Makespans of that many scenarios; `batch(n)` has the durations of scenarios 16 n to 16 n + 15.
std::vector<Nanos> simulate_batches(const Program& program, std::size_t scenarios,
                                    const std::function<BatchDurations(std::size_t)>& batch);

/// The same where messages share resources: the durations are what Traffic::fixed is in every
/// scenario, `lengths` are factors of what flows (none: 1), and scenarios are run one by one.
std::vector<Nanos> simulate_batches(const Program& program, const Traffic& traffic,
                                    std::size_t scenarios,
                                    const std::function<BatchDurations(std::size_t)>& batch,
                                    const std::function<BatchDurations(std::size_t)>& lengths = {});

}  // namespace bubblescope
