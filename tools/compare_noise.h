// compare under noise: who beats whom, in the same scenarios.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope {

/// The report of one schedule, under the name that was asked for.
struct NamedReport {
  std::string name;
  const BubbleReport* report = nullptr;
};

/// 1000 steps             p50             p95  beats:  gpipe   1f1b
/// gpipe               ...             ...              -  2.1 %
///
/// Empty where there is no noise.
std::string write_beats_text(const std::vector<NamedReport>& reports);

/// `,"beats":[[0.5,0.021],[0.979,0.5]]`: in which part of the scenarios the schedule of the row is
/// faster than that of the column; ties count half. Empty where there is no noise.
std::string write_beats_json(const std::vector<NamedReport>& reports);

}  // namespace bubblescope
