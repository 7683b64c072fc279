// Aligns the clocks of ranks by their pairwise differences, the most certain first.
#include "traces/measured/align_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/ir/units.h"

namespace bubblescope::traces {

namespace {

bool is_fault(const std::optional<Nanos>& gap) { return gap && *gap < -kClocksExact; }

/// Two ranks that depend on each other's ops.
struct ClockLink {
  std::int32_t from = 0;
  std::int32_t to = 0;
  Nanos ahead = 0;  ///< of the clock of `to`; 0 where nothing is wrong
  Nanos slack = 0;  ///< of a round trip: the smaller, the more certain the difference
};

/// Returns nullopt where only one of the two ranks depends on the other, and where no constant
/// difference explains the gaps.
std::optional<ClockLink> link_of(const ClockGaps& gaps, std::int32_t from, std::int32_t to) {
  const std::optional<Nanos> there = gaps.smallest(from, to);
  const std::optional<Nanos> back = gaps.smallest(to, from);
  if (!there || !back || *there + *back < 0) return {};
  const bool is_wrong = is_fault(there) || is_fault(back);
  return ClockLink{from, to, is_wrong ? (*there - *back) / 2 : 0, *there + *back};
}

std::vector<ClockLink> sort_by_certainty(const ClockGaps& gaps) {
  std::vector<ClockLink> links;
  for (std::int32_t from = 0; from < gaps.ranks(); ++from)
    for (std::int32_t to = from + 1; to < gaps.ranks(); ++to)
      if (const std::optional<ClockLink> link = link_of(gaps, from, to)) links.push_back(*link);
  std::stable_sort(links.begin(), links.end(), [](const ClockLink& left, const ClockLink& right) {
    return left.slack < right.slack;
  });
  return links;
}

/// Ranks that a link connects share a clock from then on.
std::vector<Nanos> shifts(const ClockGaps& gaps) {
  const auto ranks = static_cast<std::size_t>(gaps.ranks());
  std::vector<std::int32_t> group(ranks);
  std::iota(group.begin(), group.end(), 0);
  std::vector<Nanos> ahead(ranks, 0);  // the lead of the clock within its group
  for (const ClockLink& link : sort_by_certainty(gaps)) {
    const std::int32_t joined = group[link.to];
    if (group[link.from] == joined) continue;
    const Nanos more = ahead[link.from] + link.ahead - ahead[link.to];
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (group[rank] != joined) continue;
      group[rank] = group[link.from];
      ahead[rank] += more;
    }
  }
  std::vector<Nanos> shift;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto first = std::find(group.begin(), group.end(), group[rank]) - group.begin();
    shift.push_back(ahead[static_cast<std::size_t>(first)] - ahead[rank]);
  }
  return shift;
}

/// A remaining error between two ranks after the correction.
struct ClockFault {
  Nanos gap = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;
};

std::optional<ClockFault> worst_fault(const ClockGaps& gaps, const std::vector<Nanos>& shift) {
  std::optional<ClockFault> worst;
  for (std::int32_t from = 0; from < gaps.ranks(); ++from)
    for (std::int32_t to = 0; to < gaps.ranks(); ++to) {
      const std::optional<Nanos> smallest = gaps.smallest(from, to);
      if (!smallest) continue;
      const Nanos gap = *smallest + shift[to] - shift[from];
      if (is_fault(gap) && (!worst || gap < worst->gap)) worst = ClockFault{gap, from, to};
    }
  return worst;
}

}  // namespace

ClockGaps::ClockGaps(std::int32_t ranks)
    : ranks_(ranks), smallest_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

std::size_t ClockGaps::index(std::int32_t from, std::int32_t to) const {
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
         static_cast<std::size_t>(to);
}

void ClockGaps::add(const Program& program, const Timeline& timeline) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (is_message(program.instructions[id])) continue;
    for (const InstructionId awaited : program.dependencies_of(id)) {
      if (!is_message(program.instructions[awaited])) continue;
      const InstructionId producer = program.dependencies_of(awaited).front();
      const Nanos gap = timeline.start[id] - timeline.end[producer];
      std::optional<Nanos>& smallest =
          smallest_[index(program.instructions[producer].rank, program.instructions[id].rank)];
      smallest = std::min(smallest.value_or(gap), gap);
    }
  }
}

ClockCorrection align_clocks(const ClockGaps& gaps) {
  ClockCorrection correction{shifts(gaps), {}};
  for (std::int32_t rank = 0; rank < gaps.ranks(); ++rank) {
    const Nanos shift = correction.shift[rank];
    if (shift == 0) continue;
    correction.notes.push_back(
        fmt::format("the clock of rank {} was set {} by {}: ops had begun before their "
                    "inputs ended",
                    rank, shift > 0 ? "forward" : "back", to_text(std::abs(shift))));
  }
  if (const std::optional<ClockFault> fault = worst_fault(gaps, correction.shift))
    correction.notes.push_back(fmt::format(
        "an op of rank {} begins {} before its input ends on rank {}, which no shift of "
        "their clocks explains: slices include waiting, or clocks drift; idle times "
        "between these ranks are off by as much",
        fault->to, to_text(-fault->gap), fault->from));
  return correction;
}

}  // namespace bubblescope::traces
