// Removes the conclusions from a report.
#include "sim/analysis/conclusions.h"

#include <cmath>
#include <limits>

namespace bubblescope::inline sim {

BubbleReport remove_conclusions(BubbleReport report) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  report.bubble = {kUnknown, kUnknown, kUnknown, 0};
  report.lower_bound = 0;
  report.period.reset();
  report.critical_path.clear();
  report.slack.clear();
  for (RankReport& rank : report.ranks) rank.idle_by_cause = {};
  return report;
}

bool is_conclusive(const BubbleReport& report) { return !std::isnan(report.bubble.ratio); }

}  // namespace bubblescope::inline sim
