// --cap: the memory limit of a rank, in units of --mem or in bytes.
#pragma once

#include <vector>

#include "sim/analysis/report.h"
#include "sim/ir/validate.h"
#include "sim/model/memory_model.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Reports on stderr that a bare --cap is no number of bytes, where activations have bytes.
void warn_of_cap_unit(const MemoryOptions& options);

/// Throws Error for a --cap in bytes where activations have none.
void check_cap_unit(const MemoryOptions& options, bool has_bytes);

/// Converts a --cap in bytes to units of --mem, for schedules that search for an order under a cap:
/// as many as fit whatever stages a rank gets. Empty where activations have no bytes.
std::vector<Millionths> convert_caps_to_units(const MemoryModel& memory, const Shape& shape);

/// Returns one line per rank that exceeds --cap; empty where all fit.
Problems over_cap(const std::vector<Peak>& peaks, const MemoryModel& memory);
std::vector<Peak> collect_peaks(const BubbleReport& report);

}  // namespace bubblescope::tools
