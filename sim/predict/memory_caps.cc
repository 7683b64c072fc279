// Handles caps in bytes and caps in units.
#include "sim/predict/memory_caps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/bytes_text.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

void check_cap_unit(const UniformMemory& memory, bool has_bytes) {
  if (!memory.cap_bytes.empty() && !has_bytes)
    throw Error(
        "`cap` is in bytes, but no activation has any here; give `model`, a `costs` file with "
        "memory, or a `cap` in the unit of `mem`, such as 3");
}

namespace {

RankOverCap exceed(std::size_t rank, double held, double cap, std::string message) {
  return {held / std::max(cap, 1e-9) - 1,
          {static_cast<std::int32_t>(rank), {}, std::move(message)}};
}

}  // namespace

std::vector<RankOverCap> list_ranks_over_cap(const std::vector<Peak>& peaks,
                                             const MemoryModel& memory) {
  std::vector<RankOverCap> found;
  for (std::size_t rank = 0; rank < memory.cap_bytes.size(); ++rank) {
    const Bytes cap = memory.cap_bytes[rank], held = peaks[rank].bytes.value_or(0);
    if (held > cap)
      found.push_back(
          exceed(rank, static_cast<double>(held), static_cast<double>(cap),
                 fmt::format("rank {} holds {} at its peak, {} over `cap` {}", rank,
                             format_bytes(held), format_bytes(held - cap), format_bytes(cap))));
  }
  for (std::size_t rank = 0; rank < memory.cap.size(); ++rank) {
    const double cap = static_cast<double>(memory.cap[rank]) / 1e6, held = peaks[rank].units;
    if (held > cap * (1 + 1e-9))
      found.push_back(
          exceed(rank, held, cap,
                 fmt::format("rank {} holds {:g} at its peak, over `cap` {:g}", rank, held, cap)));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const RankOverCap& a, const RankOverCap& b) { return a.excess > b.excess; });
  return found;
}

Problems find_ranks_over_cap(const std::vector<Peak>& peaks, const MemoryModel& memory) {
  Problems problems;
  for (RankOverCap& over : list_ranks_over_cap(peaks, memory))
    problems.push_back(std::move(over.problem));
  return problems;
}

std::vector<Peak> collect_peaks(const BubbleReport& report) {
  std::vector<Peak> peaks;
  for (const RankReport& rank : report.ranks) peaks.push_back(rank.peak);
  return peaks;
}

}  // namespace bubblescope::inline sim
