// compare under noise: win probabilities over the same scenarios.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/report.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

/// The report of one schedule, with the name that was asked for.
struct NamedReport {
  std::string name;
  const BubbleReport* report = nullptr;
};

/// 1000 steps             p50             p95    gpipe     1f1b
/// gpipe               ...             ...              -  2.1 %
///
/// Empty without noise.
std::string write_win_probability_text(const std::vector<NamedReport>& reports);

/// Writes `"win_probability":[[0.5,0.021],[0.979,0.5]]`: the fraction of scenarios in which the
/// schedule of the row is faster than that of the column; ties count half. Its old name "beats" is
/// written as well. Writes nothing without noise.
void write_win_probability_json(traces::JsonWriter& json, const std::vector<NamedReport>& reports);

/// Columns for the csv table, and a schedule's values in them:
/// `,p50_ns,p95_ns,mean_ns,min_ns,max_ns,win_probability_gpipe,win_probability_1f1b`, followed by
/// the columns that were renamed under their old names: `least_ns`, `most_ns`, `beats_gpipe`,
/// `beats_1f1b`. Empty without noise; no values where no report has that name.
std::string write_noise_csv_header(const std::vector<NamedReport>& reports);
std::string write_noise_csv_values(const std::vector<NamedReport>& reports,
                                   const std::string& name);

}  // namespace bubblescope::tools
