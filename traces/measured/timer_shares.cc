// Finds shares of iterations.
#include "traces/measured/timer_shares.h"

#include <algorithm>

#include "sim/ir/median.h"

namespace bubblescope::traces {

namespace {

/// Logs round times, so that a rank may seem to compute a little longer than the iteration.
constexpr double kRounding = 1.01;

bool lists_ranks(const ReportedTimer& timer, const std::set<std::int32_t>& ranks) {
  return std::equal(timer.by_rank.begin(), timer.by_rank.end(), ranks.begin(), ranks.end(),
                    [](const auto& entry, std::int32_t rank) { return entry.first == rank; });
}

/// Whether a report has both timers, of the same ranks.
bool is_whole(const TimerReport& report) {
  if (report.is_garbled || !report.forward || !report.backward) return false;
  return lists_ranks(*report.forward, report.ranks) && lists_ranks(*report.backward, report.ranks);
}

}  // namespace

void TimerReport::add_name(std::string_view name) {
  if (!names.emplace(name).second) is_garbled = true;
}

std::optional<ReportedTimer>* TimerReport::find(std::string_view name) {
  if (name == "forward-compute") return &forward;
  if (name == "backward-compute") return &backward;
  return nullptr;
}

void TimerShares::add(const TimerReport& report) {
  if (!report.forward && !report.backward) return;
  if (!is_whole(report)) {
    ++unfit_;
    return;
  }
  if (!report.iteration_ms || *report.iteration_ms <= 0) return;
  if (!report.ranks.empty()) return add_ranks(report);
  std::optional<double> least;
  if (report.forward->min_ms && report.backward->min_ms)
    least = (*report.forward->min_ms + *report.backward->min_ms) / *report.iteration_ms;
  const double most = (report.forward->max_ms + report.backward->max_ms) / *report.iteration_ms;
  const double longest = std::max(report.forward->max_ms, report.backward->max_ms);
  if (least.value_or(0) > kRounding || longest > kRounding * *report.iteration_ms) {
    ++unfit_;
    return;
  }
  // The rank with the longest forwards need not have the longest backwards.
  std::optional<double> high;
  if (least) high = std::max(0.0, 1 - *least);
  add_range(std::max(0.0, 1 - most), high, *report.iteration_ms);
}

void TimerShares::add_ranks(const TimerReport& report) {
  double least = 1;
  double most = 0;
  const auto compute = [&](std::int32_t rank) {
    return report.forward->by_rank.at(rank) + report.backward->by_rank.at(rank);
  };
  for (const std::int32_t rank : report.ranks) {
    const double share = compute(rank) / *report.iteration_ms;
    least = std::min(least, share);
    most = std::max(most, share);
  }
  if (most > kRounding) {
    ++unfit_;
    return;
  }
  for (const std::int32_t rank : report.ranks) {
    ranks_[rank].compute_ms.push_back(compute(rank));
    ranks_[rank].share.push_back(compute(rank) / *report.iteration_ms);
  }
  add_range(std::max(0.0, 1 - most), std::max(0.0, 1 - least), *report.iteration_ms);
}

void TimerShares::add_range(double low, std::optional<double> high, double iteration_ms) {
  iteration_ms_.push_back(iteration_ms);
  low_.push_back(low);
  if (high) high_.push_back(*high);
}

std::optional<ShareRange> TimerShares::find_range() const {
  if (low_.empty()) return {};
  ShareRange share;
  share.low = median_of(low_);
  share.lowest = *std::min_element(low_.begin(), low_.end());
  // A report without the shortest times bounds no rank from above, and so no median.
  if (high_.size() == low_.size()) {
    share.high = median_of(high_);
    share.highest = *std::max_element(high_.begin(), high_.end());
  }
  share.iteration_ms = median_of(iteration_ms_);
  share.reports = low_.size();
  return share;
}

std::map<std::int32_t, RankShare> TimerShares::find_ranks() const {
  std::map<std::int32_t, RankShare> ranks;
  for (const auto& [rank, of_rank] : ranks_)
    ranks[rank] = {median_of(of_rank.compute_ms), median_of(of_rank.share)};
  return ranks;
}

}  // namespace bubblescope::traces
