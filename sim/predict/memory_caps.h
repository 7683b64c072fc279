// Caps: the memory limit of each rank, in the unit of UniformMemory or in bytes.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/model/memory_model.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// Throws Error for a cap in bytes where activations have none.
void check_cap_unit(const UniformMemory& memory, bool has_bytes);

/// A rank that exceeds its cap, by this fraction of it.
struct RankOverCap {
  double excess = 0;
  Problem problem;
};

/// Returns the ranks that exceed their caps, the one that exceeds it most first.
std::vector<RankOverCap> list_ranks_over_cap(const std::vector<Peak>& peaks,
                                             const MemoryModel& memory);

/// Returns one line for each of them; empty where all fit.
Problems find_ranks_over_cap(const std::vector<Peak>& peaks, const MemoryModel& memory);

/// Returns the peak of every rank.
std::vector<Peak> collect_peaks(const BubbleReport& report);

}  // namespace bubblescope::inline sim
