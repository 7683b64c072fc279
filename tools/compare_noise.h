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

/// Columns for the csv table, and a schedule's values in them:
/// `,p50_ns,p95_ns,mean_ns,least_ns,most_ns,beats_gpipe,beats_1f1b`. Empty where there is no noise;
/// no values where there is no report of that name.
std::string write_noise_csv_header(const std::vector<NamedReport>& reports);
std::string write_noise_csv_values(const std::vector<NamedReport>& reports,
                                   const std::string& name);

}  // namespace bubblescope
