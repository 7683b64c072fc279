// Removes the conclusions from a report.
#include "sim/analysis/conclusions.h"

namespace bubblescope::inline sim {

BubbleReport remove_conclusions(BubbleReport report) {
  report.bubble.reset();
  report.lower_bound = 0;
  report.period.reset();
  report.critical_path.clear();
  report.slack.clear();
  for (RankReport& rank : report.ranks) rank.idle_by_cause = {};
  return report;
}

bool is_conclusive(const BubbleReport& report) { return report.bubble.has_value(); }

}  // namespace bubblescope::inline sim
