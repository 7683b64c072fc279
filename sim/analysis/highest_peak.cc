// Compares the peaks of ranks.
#include "sim/analysis/highest_peak.h"

#include <algorithm>

namespace bubblescope::inline sim {

HighestPeak find_highest_peak(const BubbleReport& report) {
  HighestPeak highest;
  for (const RankReport& rank : report.ranks) {
    highest.activations = std::max(highest.activations, rank.peak.activations);
    highest.units = std::max(highest.units, rank.peak.units);
    highest.bytes = std::max(highest.bytes, rank.peak.bytes);  // an unknown peak is less than all
  }
  return highest;
}

}  // namespace bubblescope::inline sim
