// Aligns the clocks of ranks by their pairwise differences, the most certain first.
#include "traces/measured/align_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

namespace {

enum class Clocks { kSteady, kDrifting };

bool is_fault(Nanos gap) { return gap < -kClockTolerance; }

/// The lead of one clock over another: `ahead` at the origin, and `drift` more per nanosecond.
struct ClockLead {
  double ahead = 0;
  double drift = 0;
  double slack = 0;  ///< of a round trip: the smaller, the more certain the lead
};

/// Returns the lead that leaves both directions the same smallest gap, if the clocks drift by
/// `drift`.
ClockLead lead_at(const std::vector<ClockGap>& there, const std::vector<ClockGap>& back,
                  double drift) {
  const auto smallest = [](const std::vector<ClockGap>& gaps, double slope) {
    double least = std::numeric_limits<double>::max();
    for (const ClockGap& gap : gaps)
      least = std::min(least, static_cast<double>(gap.gap) - slope * static_cast<double>(gap.time));
    return least;
  };
  const double forward = smallest(there, drift);
  const double backward = smallest(back, -drift);
  return {std::trunc((forward - backward) / 2), drift, forward + backward};
}

/// The slack is a concave function of the drift: the search ends where it is largest.
ClockLead drifting_lead(const std::vector<ClockGap>& there, const std::vector<ClockGap>& back) {
  constexpr double kMaxDrift = 1e-3;  // clocks of computers differ by less than a tenth of this
  constexpr int kSearchSteps = 80;
  double low = -kMaxDrift;
  double high = kMaxDrift;
  for (int step = 0; step < kSearchSteps; ++step) {
    const double third = (high - low) / 3;
    if (lead_at(there, back, low + third).slack < lead_at(there, back, high - third).slack)
      low += third;
    else
      high -= third;
  }
  return lead_at(there, back, (low + high) / 2);
}

/// Two ranks that depend on each other's ops.
struct ClockLink {
  std::int32_t from = 0;
  std::int32_t to = 0;
  ClockLead lead;  ///< of the clock of `to`; none where nothing is wrong
};

/// Returns nullopt where no such difference explains the gaps in the two directions.
std::optional<ClockLink> link_of(const ClockGaps::Pair& ranks, const std::vector<ClockGap>& there,
                                 const std::vector<ClockGap>& back, Clocks clocks) {
  ClockLead lead = clocks == Clocks::kSteady ? lead_at(there, back, 0) : drifting_lead(there, back);
  if (lead.slack < 0) return {};
  const auto is_wrong = [](const ClockGap& gap) { return is_fault(gap.gap); };
  if (std::none_of(there.begin(), there.end(), is_wrong) &&
      std::none_of(back.begin(), back.end(), is_wrong))
    lead.ahead = lead.drift = 0;
  return ClockLink{ranks.first, ranks.second, lead};
}

std::vector<ClockLink> sort_by_certainty(const ClockGaps& gaps, Clocks clocks) {
  std::vector<ClockLink> links;
  for (const auto& [ranks, there] : gaps.pairs()) {
    if (ranks.first >= ranks.second) continue;
    const auto back = gaps.pairs().find({ranks.second, ranks.first});
    if (back == gaps.pairs().end()) continue;  // only one depends on the other
    if (const std::optional<ClockLink> link = link_of(ranks, there, back->second, clocks))
      links.push_back(*link);
  }
  std::stable_sort(links.begin(), links.end(), [](const ClockLink& left, const ClockLink& right) {
    return left.lead.slack < right.lead.slack;
  });
  return links;
}

/// Ranks that a link connects share a clock from then on.
std::vector<ClockShift> find_shifts(const ClockGaps& gaps, Clocks clocks) {
  const auto ranks = static_cast<std::size_t>(gaps.ranks());
  std::vector<std::int32_t> group(ranks);
  std::iota(group.begin(), group.end(), 0);
  std::vector<std::vector<std::int32_t>> members(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) members[rank].push_back(group[rank]);
  std::vector<ClockLead> leads(ranks);  // within its group
  for (const ClockLink& link : sort_by_certainty(gaps, clocks)) {
    const std::int32_t joined = group[link.to];
    if (group[link.from] == joined) continue;
    const double ahead = leads[link.from].ahead + link.lead.ahead - leads[link.to].ahead;
    const double drift = leads[link.from].drift + link.lead.drift - leads[link.to].drift;
    for (const std::int32_t rank : std::exchange(members[joined], {})) {
      group[rank] = group[link.from];
      members[group[rank]].push_back(rank);
      leads[rank].ahead += ahead;
      leads[rank].drift += drift;
    }
  }
  std::vector<ClockShift> shifts;
  std::map<std::int32_t, ClockLead> references;  // the lead of the first rank of each group
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const ClockLead& reference = references.emplace(group[rank], leads[rank]).first->second;
    shifts.push_back({static_cast<Nanos>(reference.ahead - leads[rank].ahead),
                      reference.drift - leads[rank].drift});
  }
  return shifts;
}

/// A remaining error between two ranks after the correction.
struct ClockFault {
  Nanos gap = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;
};

std::optional<ClockFault> worst_fault(const ClockGaps& gaps,
                                      const std::vector<ClockShift>& shifts) {
  std::optional<ClockFault> worst;
  for (const auto& [ranks, of_pair] : gaps.pairs())
    for (const ClockGap& seen : of_pair) {
      const Nanos gap =
          seen.gap + shifts[ranks.second].after(seen.time) - shifts[ranks.first].after(seen.time);
      if (is_fault(gap) && (!worst || gap < worst->gap))
        worst = ClockFault{gap, ranks.first, ranks.second};
    }
  return worst;
}

/// Constant shifts, unless only shifts that grow evenly explain all gaps.
std::vector<ClockShift> explain_gaps(const ClockGaps& gaps) {
  constexpr std::size_t kMinSteps = 3;  // two always lie on a line
  std::vector<ClockShift> steady = find_shifts(gaps, Clocks::kSteady);
  if (gaps.steps() < kMinSteps || !worst_fault(gaps, steady)) return steady;
  std::vector<ClockShift> drifting = find_shifts(gaps, Clocks::kDrifting);
  return worst_fault(gaps, drifting) ? steady : drifting;
}

Nanos first_start(const Program& program, const Timeline& timeline) {
  Nanos first = std::numeric_limits<Nanos>::max();
  for (InstructionId id = 0; id < program.size(); ++id)
    if (!is_message(program.instructions[id])) first = std::min(first, timeline.start[id]);
  return first;
}

std::string describe_shift(std::int32_t rank, const ClockShift& shift) {
  const auto changed = [](double sign, Nanos by) {
    return fmt::format("{} by {}", sign > 0 ? "forward" : "back", to_text(std::abs(by)));
  };
  std::string text;
  if (shift.shift != 0) text = changed(static_cast<double>(shift.shift), shift.shift);
  if (const auto per_second = static_cast<Nanos>(std::llround(shift.drift * 1e9)); per_second != 0)
    text +=
        (text.empty() ? "" : ", and then ") + changed(shift.drift, per_second) + " every second";
  return fmt::format(
      "the clock of rank {} was set {}, because ops began before their inputs had ended", rank,
      text);
}

}  // namespace

bool are_on_one_host(const ObservedTrace& trace) {
  const std::string& host = trace.recorders.front().host;
  return !host.empty() &&
         std::all_of(trace.recorders.begin(), trace.recorders.end(),
                     [&](const Recorder& recorder) { return recorder.host == host; });
}

void ClockGaps::add(const Program& program, const Timeline& timeline) {
  if (steps_++ == 0) origin_ = first_start(program, timeline);
  std::set<Pair> seen_pairs;
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (is_message(program.instructions[id])) continue;
    for (const InstructionId awaited : program.dependencies_of(id)) {
      if (!is_message(program.instructions[awaited])) continue;
      const InstructionId producer = program.dependencies_of(awaited).front();
      const ClockGap seen{timeline.start[id] - origin_,
                          timeline.start[id] - timeline.end[producer]};
      const Pair pair{program.instructions[producer].rank, program.instructions[id].rank};
      std::vector<ClockGap>& gaps = gaps_[pair];
      if (seen_pairs.insert(pair).second)
        gaps.push_back(seen);
      else if (seen.gap < gaps.back().gap)
        gaps.back() = seen;
    }
  }
}

ClockCorrection align_clocks(const ClockGaps& gaps) {
  ClockCorrection correction{gaps.origin(), explain_gaps(gaps), {}};
  for (std::int32_t rank = 0; rank < gaps.ranks(); ++rank) {
    const ClockShift& shift = correction.shifts[rank];
    if (shift.shift != 0 || std::llround(shift.drift * 1e9) != 0)
      correction.notes.push_back(describe_shift(rank, shift));
  }
  if (const std::optional<ClockFault> fault = worst_fault(gaps, correction.shifts))
    correction.notes.push_back(fmt::format(
        "an op of rank {} begins {} before its input ends on rank {}, which no shift of "
        "their clocks explains: slices include waiting, or clocks drift; idle times "
        "between these ranks are off by as much",
        fault->to, to_text(-fault->gap), fault->from));
  return correction;
}

ClockCorrection align_clocks_of_host(const ClockGaps& gaps) {
  constexpr Nanos kHostClockTolerance = 100'000;  // events of one device, read by several processes
  const std::vector<ClockShift> as_recorded(static_cast<std::size_t>(gaps.ranks()));
  const std::optional<ClockFault> fault = worst_fault(gaps, as_recorded);
  if (!fault || fault->gap > -kHostClockTolerance || worst_fault(gaps, explain_gaps(gaps)))
    return {gaps.origin(), as_recorded, {}};
  ClockCorrection correction = align_clocks(gaps);
  correction.notes.push_back(
      "all ranks state the same host, whose clock they would share: these are several hosts of one "
      "name");
  return correction;
}

}  // namespace bubblescope::traces
