// The share of an iteration that ranks spend outside forward and backward, report by report.
//
// Each report of timers belongs to the iteration line before it. Times of different reports are
// never added: runs become slower, and sequences longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::traces {

/// The least and the largest share of an iteration that a rank may spend outside forward and
/// backward: medians over reports, and the extremes of single ones.
struct ShareRange {
  double low = 0;
  std::optional<double> high = {};  ///< empty where reports have the longest times alone
  double lowest = 0;
  std::optional<double> highest = {};
  double iteration_ms = 0;  ///< median of the iterations of these reports
  std::size_t reports = 0;
};

/// The time that a rank computes in an iteration, as a time and as a share: medians over reports.
struct RankShare {
  double compute_ms = 0;
  double share = 0;
};

/// A timer over all ranks in one report: bounds of their times, or the time of each.
struct ReportedTimer {
  std::optional<double> min_ms = {};  ///< empty where the report has the longest time alone
  double max_ms = 0;
  std::map<std::int32_t, double> by_rank = {};
};

/// The timers of one report that its share depends on.
struct TimerReport {
  std::optional<double> iteration_ms = {};  ///< by the line before it
  std::optional<ReportedTimer> forward = {};
  std::optional<ReportedTimer> backward = {};
  std::set<std::int32_t> ranks = {};              ///< that any of its timers lists
  std::set<std::string, std::less<>> names = {};  ///< of its timers
  bool is_garbled = false;  ///< a timer or a rank is there twice, or a time is cut

  /// Notes that the report has a timer of this name.
  void add_name(std::string_view name);
  /// The timer of this name; nullptr if the share does not depend on it.
  std::optional<ReportedTimer>* find(std::string_view name);
};

/// Collects the shares of reports.
class TimerShares {
 public:
  void add(const TimerReport& report);

  /// nullopt if no report has a share.
  std::optional<ShareRange> find_range() const;
  /// Where reports list ranks; empty elsewhere.
  std::map<std::int32_t, RankShare> find_ranks() const;
  /// The number of reports without a share because they are cut or contradict their iteration.
  std::size_t unfit() const { return unfit_; }

 private:
  void add_ranks(const TimerReport& report);
  void add_range(double low, std::optional<double> high, double iteration_ms);

  struct OfRank {
    std::vector<double> compute_ms;
    std::vector<double> share;
  };
  std::vector<double> low_;
  std::vector<double> high_;  ///< of the reports that have one
  std::vector<double> iteration_ms_;
  std::map<std::int32_t, OfRank> ranks_;
  std::size_t unfit_ = 0;
};

}  // namespace bubblescope::traces
