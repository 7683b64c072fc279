// Picks a sample that keeps the shape of the picture and the ranks of most interest.
#include "traces/text/shown_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "sim/ir/counted.h"

namespace bubblescope::traces {

namespace {

std::vector<std::int32_t> list_recorded(const BubbleReport& report) {
  std::vector<std::int32_t> recorded;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank)
    if (report.ranks[rank].is_recorded) recorded.push_back(static_cast<std::int32_t>(rank));
  return recorded;
}

/// The first of these ranks for which `value` is largest.
std::int32_t first_highest(const BubbleReport& report, const std::vector<std::int32_t>& ranks,
                           const std::function<double(const RankReport&)>& value) {
  return *std::max_element(ranks.begin(), ranks.end(), [&](std::int32_t left, std::int32_t right) {
    return value(report.ranks[static_cast<std::size_t>(left)]) <
           value(report.ranks[static_cast<std::size_t>(right)]);
  });
}

/// Chooses `parts` of the ranks, spread evenly from the first to the last.
std::set<std::int32_t> spread_evenly(const std::vector<std::int32_t>& ranks, std::int32_t parts) {
  std::set<std::int32_t> chosen;
  const std::int64_t last = std::ssize(ranks) - 1;
  for (std::int32_t part = 0; part < parts; ++part)
    chosen.insert(ranks[static_cast<std::size_t>(std::int64_t{part} * last / (parts - 1))]);
  return chosen;
}

}  // namespace

std::vector<std::int32_t> choose_shown_ranks(const BubbleReport& report, bool all) {
  std::vector<std::int32_t> ranks = list_recorded(report);
  if (all || ranks.size() <= static_cast<std::size_t>(kShownRanks)) return ranks;
  const auto highest = [&](const std::function<double(const RankReport&)>& value) {
    return first_highest(report, ranks, value);
  };
  const std::set<std::int32_t> notable{
      highest([](const RankReport& rank) { return static_cast<double>(rank.busy); }),
      highest([](const RankReport& rank) { return static_cast<double>(rank.idle); }),
      highest([](const RankReport& rank) { return rank.peak.activations; })};
  for (std::int32_t parts = kShownRanks;; --parts) {
    std::set<std::int32_t> chosen = spread_evenly(ranks, parts);
    chosen.insert(notable.begin(), notable.end());
    if (chosen.size() <= static_cast<std::size_t>(kShownRanks))
      return {chosen.begin(), chosen.end()};
  }
}

std::string describe_shown_ranks(const BubbleReport& report, bool all) {
  const std::size_t ranks = list_recorded(report).size();
  if (all || ranks <= static_cast<std::size_t>(kShownRanks)) return {};
  return fmt::format("{} of {}; `all_ranks` shows every one", kShownRanks, counted(ranks, "rank"));
}

}  // namespace bubblescope::traces
