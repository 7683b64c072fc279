// Handles caps in bytes and caps in units.
#include "sim/predict/memory_caps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/ir/bytes_text.h"
#include "sim/ir/error.h"
#include "sim/ir/saturated.h"

namespace bubblescope::inline sim {

void check_cap_unit(const UniformMemory& memory, bool has_bytes) {
  if (!memory.cap_bytes.empty() && !has_bytes)
    throw Error(
        "`cap` is in bytes, but no activation has any here; give `model`, a `costs` file with "
        "memory, or a `cap` in the unit of `mem`, such as 3");
}

Problems over_cap(const std::vector<Peak>& peaks, const MemoryModel& memory) {
  Problems problems;
  for (std::size_t rank = 0; rank < memory.cap_bytes.size(); ++rank) {
    const Bytes held = peaks[rank].bytes.value_or(0);
    if (held > memory.cap_bytes[rank])
      problems.push_back(
          {static_cast<std::int32_t>(rank),
           {},
           fmt::format("rank {} holds {} at its peak, {} over `cap` {}", rank, format_bytes(held),
                       format_bytes(held - memory.cap_bytes[rank]),
                       format_bytes(memory.cap_bytes[rank]))});
  }
  for (std::size_t rank = 0; rank < memory.cap.size(); ++rank) {
    const double cap = static_cast<double>(memory.cap[rank]) / 1e6;
    const double held = peaks[rank].units;
    if (held > cap * (1 + 1e-9))
      problems.push_back(
          {static_cast<std::int32_t>(rank),
           {},
           fmt::format("rank {} holds {:g} at its peak, over `cap` {:g}", rank, held, cap)});
  }
  return problems;
}

std::vector<Peak> collect_peaks(const BubbleReport& report) {
  std::vector<Peak> peaks;
  for (const RankReport& rank : report.ranks) peaks.push_back(rank.peak);
  return peaks;
}

}  // namespace bubblescope::inline sim
