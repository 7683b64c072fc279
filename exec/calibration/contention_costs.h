// Estimates costs under contention from measured steps: the durations of ops and messages by the
// number of busy ranks on their device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/calibration/calibrate.h"

namespace bubblescope::exec {

/// [stage][kind][busy ranks - 1]; nullopt if no op ran under that contention.
using ContentionCosts =
    std::vector<std::array<std::vector<std::optional<Estimate>>, kComputeKinds>>;

struct ContentionRequest {
  std::int32_t stages = 1;
  std::int32_t ranks_per_device = 1;  ///< neighbouring ranks share a device
};

/// An op is a sample for n busy ranks if the mean number of busy ranks during the op is within a
/// quarter of n.
ContentionCosts find_contention_costs(std::span<const Observation> observations,
                                      const ContentionRequest& request);

/// Estimates the duration of messages while 0, 1, 2, ... ranks of the sender's device are busy, by
/// the same rule.
std::vector<std::optional<Estimate>> find_message_costs(std::span<const Observation> observations,
                                                        std::int32_t ranks_per_device);

/// The durations of a stage's EVICT and LOAD while 0, 1, 2, ... ranks of their device are busy.
struct CopyCosts {
  std::vector<std::optional<Estimate>> evict;
  std::vector<std::optional<Estimate>> load;
};

/// Returns the costs of each stage's copies, by the same rule.
std::vector<CopyCosts> find_copy_costs(const Observation& observation,
                                       const ContentionRequest& request);

/// Estimates the duration of messages under any contention.
std::optional<Estimate> find_message_time(std::span<const Observation> observations);

/// The mean durations of one kind of op with 1, 2, ... busy ranks. Interpolates linearly between
/// the numbers that were measured and takes the nearest beyond them, but never less than the
/// duration without contention. Empty if nothing was measured.
std::vector<Nanos> fill_contention(const std::vector<std::optional<Estimate>>& seen);

}  // namespace bubblescope::exec
