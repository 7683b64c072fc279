// Caps: the memory limit of each rank, in the unit of UniformMemory or in bytes.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/model/memory_model.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// Throws Error for a cap in bytes where activations have none.
void check_cap_unit(const UniformMemory& memory, bool has_bytes);

/// Returns one line per rank that exceeds its cap, the one that exceeds it most first; empty where
/// all fit.
Problems find_ranks_over_cap(const std::vector<Peak>& peaks, const MemoryModel& memory);

/// Returns by what fraction of its cap the rank that exceeds it most does so; 0 where all fit.
double find_excess_over_cap(const std::vector<Peak>& peaks, const MemoryModel& memory);

/// Returns the peak of every rank.
std::vector<Peak> collect_peaks(const BubbleReport& report);

}  // namespace bubblescope::inline sim
