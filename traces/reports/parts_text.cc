// Writes the lines of the text report that tell of parts.
#include "traces/reports/parts_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// A part and the time for which an op waits for it.
using PartWait = std::pair<std::string, Nanos>;

constexpr std::size_t kShown = 6;

/// Returns a text such as ": B.combine 18 ms, F.dispatch 100 us", the longest wait first, without
/// those that take no time.
std::string list_waits(std::vector<PartWait> waits) {
  std::stable_sort(waits.begin(), waits.end(), [](const PartWait& left, const PartWait& right) {
    return left.second > right.second;
  });
  std::erase_if(waits, [](const PartWait& wait) { return wait.second == 0; });
  std::string text;
  for (std::size_t at = 0; at < std::min(waits.size(), kShown); ++at)
    text += fmt::format("{}{} {}", at == 0 ? ": " : ", ", waits[at].first,
                        format_time(waits[at].second));
  if (waits.size() > kShown) text += fmt::format(" and {} more", waits.size() - kShown);
  return text;
}

/// The interleaved pair that takes longest; null if there is none.
const PlacedRun* find_longest_pair(const PartsReport& parts) {
  const PlacedRun* longest = nullptr;
  for (const PlacedRun& placed : parts.placed)
    if (placed.first != placed.last &&
        (longest == nullptr || parts.runs[placed.run].time > parts.runs[longest->run].time))
      longest = &placed;
  return longest;
}

std::string pair_line(const PartsReport& parts) {
  const PlacedRun* const longest = find_longest_pair(parts);
  if (longest == nullptr) return {};
  const PartRun& run = parts.runs[longest->run];
  std::vector<PartWait> waits;
  for (const PartUse& use : run.uses)
    waits.emplace_back((use.of_backward ? "B." : "F.") + use.name, use.exposed);
  return fmt::format("pair         {}, {} of it exposed{}\n", format_time(run.time),
                     format_time(run.exposed()), list_waits(std::move(waits)));
}

}  // namespace

std::string write_parts_text(const BubbleReport& report) {
  if (!report.parts) return {};
  const PartsReport& parts = *report.parts;
  std::size_t rank = 0;
  for (std::size_t other = 1; other < report.ranks.size(); ++other)
    if (parts.exposed(other) > parts.exposed(rank)) rank = other;
  std::vector<PartWait> waits;
  for (const PartReport& part : parts.parts) waits.emplace_back(part.name, part.exposed[rank]);
  std::string text = fmt::format("exposed      {} of the ops of rank {}{}\n",
                                 format_time(parts.exposed(rank)), rank, list_waits(waits));
  if (parts.slowed(rank) > 0)
    text += fmt::format("contention   the parts of rank {} take {} longer than alone\n", rank,
                        format_time(parts.slowed(rank)));
  return text + pair_line(parts);
}

}  // namespace bubblescope::traces
