// Means in integers that still add up.
#include "sim/analysis/mean_report.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/analysis/analyze.h"

namespace bubblescope::inline sim {

namespace {

template <class Value>
Nanos mean_time(std::span<const BubbleReport> reports, Value value) {
  // Sums quotients and remainders separately, so that no sum of times can overflow.
  const auto count = static_cast<Nanos>(reports.size());
  Nanos whole = 0;
  Nanos rest = 0;
  for (const BubbleReport& report : reports) {
    whole += value(report) / count;
    rest += value(report) % count;
  }
  return whole + (rest + count / 2) / count;
}

template <std::size_t kCount>
Nanos sum_parts(const std::array<Nanos, kCount>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Nanos{0});
}

/// Adds the rounding error of a few nanoseconds to the largest part.
template <std::size_t kCount>
void absorb_rounding(std::array<Nanos, kCount>& parts, Nanos whole) {
  *std::max_element(parts.begin(), parts.end()) += whole - sum_parts(parts);
}

/// `shown` is the rank's row in the report whose instruction ids the mean keeps.
RankReport mean_rank(std::span<const BubbleReport> reports, std::size_t rank, Nanos makespan,
                     const RankReport& shown) {
  RankReport mean = shown;
  const auto mean_of_rank = [&](auto value) {
    return mean_time(reports,
                     [&](const BubbleReport& report) { return value(report.ranks[rank]); });
  };
  mean.first_start = mean_of_rank([](const RankReport& row) { return row.first_start; });
  mean.last_end = mean_of_rank([](const RankReport& row) { return row.last_end; });
  for (std::size_t kind = 0; kind < kBusyKinds; ++kind)
    mean.busy_by_kind[kind] =
        mean_of_rank([&](const RankReport& row) { return row.busy_by_kind[kind]; });
  for (std::size_t cause = 0; cause < kIdleCauses; ++cause)
    mean.idle_by_cause[cause] =
        mean_of_rank([&](const RankReport& row) { return row.idle_by_cause[cause]; });
  mean.busy = sum_parts(mean.busy_by_kind);
  mean.idle = makespan - mean.busy;
  absorb_rounding(mean.idle_by_cause, mean.idle);
  for (const BubbleReport& report : reports)
    if (report.ranks[rank].peak.chunks > mean.peak.chunks) {
      mean.peak = report.ranks[rank].peak;
      // It is an instruction of another step.
      mean.peak.at.reset();
    }
  return mean;
}

}  // namespace

std::size_t find_median_report(std::span<const BubbleReport> reports) {
  std::vector<std::size_t> order(reports.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return reports[left].makespan < reports[right].makespan;
  });
  return order[(order.size() - 1) / 2];
}

BubbleReport average_reports(std::span<const BubbleReport> reports) {
  BubbleReport mean = reports[find_median_report(reports)];
  if (reports.size() == 1) return mean;
  mean.parts.reset();  // of one step, as links are
  mean.links.clear();
  mean.makespan = mean_time(reports, [](const BubbleReport& report) { return report.makespan; });
  mean.max_span = mean_time(reports, [](const BubbleReport& report) { return report.max_span; });
  mean.lower_bound =
      mean_time(reports, [](const BubbleReport& report) { return report.lower_bound; });
  mean.ideal = 0;
  for (std::size_t rank = 0; rank < mean.ranks.size(); ++rank) {
    mean.ranks[rank] = mean_rank(reports, rank, mean.makespan, mean.ranks[rank]);
    mean.ideal = std::max(mean.ideal, mean.ranks[rank].busy);
  }
  // Ratios of means, not means of ratios, so that the ratio agrees with a table of mean times.
  mean.bubble = measure_bubble(mean);
  return mean;
}

}  // namespace bubblescope::inline sim
