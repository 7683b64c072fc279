// Picks a sample that keeps the shape of the picture and the ranks of most interest.
#include "traces/text/shown_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

namespace bubblescope::traces {

namespace {

/// The first rank for which `value` is largest.
std::int32_t first_highest(const BubbleReport& report,
                           const std::function<double(const RankReport&)>& value) {
  const auto highest = std::max_element(
      report.ranks.begin(), report.ranks.end(),
      [&](const RankReport& left, const RankReport& right) { return value(left) < value(right); });
  return static_cast<std::int32_t>(highest - report.ranks.begin());
}

/// Indices of `parts` ranks, spread evenly from the first to the last.
std::set<std::int32_t> spread_evenly(std::int32_t ranks, std::int32_t parts) {
  std::set<std::int32_t> chosen;
  for (std::int32_t part = 0; part < parts; ++part)
    chosen.insert(static_cast<std::int32_t>(std::int64_t{part} * (ranks - 1) / (parts - 1)));
  return chosen;
}

}  // namespace

std::vector<std::int32_t> choose_shown_ranks(const BubbleReport& report, bool all) {
  const auto ranks = static_cast<std::int32_t>(report.ranks.size());
  if (all || ranks <= kShownRanks) {
    std::vector<std::int32_t> every(report.ranks.size());
    std::iota(every.begin(), every.end(), 0);
    return every;
  }
  const std::set<std::int32_t> notable{
      first_highest(report, [](const RankReport& rank) { return static_cast<double>(rank.busy); }),
      first_highest(report, [](const RankReport& rank) { return static_cast<double>(rank.idle); }),
      first_highest(report, [](const RankReport& rank) { return rank.peak.activations; })};
  for (std::int32_t parts = kShownRanks;; --parts) {
    std::set<std::int32_t> chosen = spread_evenly(ranks, parts);
    chosen.insert(notable.begin(), notable.end());
    if (chosen.size() <= static_cast<std::size_t>(kShownRanks))
      return {chosen.begin(), chosen.end()};
  }
}

std::string describe_shown_ranks(const BubbleReport& report, bool all) {
  if (all || report.ranks.size() <= static_cast<std::size_t>(kShownRanks)) return {};
  return fmt::format("{} of {} ranks; `all_ranks` shows every one", kShownRanks,
                     report.ranks.size());
}

}  // namespace bubblescope::traces
