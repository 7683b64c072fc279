// Reads the numbers of a report that we wrote as json.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bubblescope::traces {

/// The numbers of a whole step: {"makespan_ns": 27000000, "bubble_ratio": 0.111, ...}. Those of
/// "bubble" and "noise" have its key in front; "peak_activations" is the largest of all ranks.
/// Empty if the json is not a report. Throws Error if it is not json.
std::optional<std::map<std::string, double>> read_report_numbers(std::string_view text,
                                                                 const std::string& file);

}  // namespace bubblescope::traces
