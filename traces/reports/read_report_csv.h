// Reads the numbers of a report that we wrote as csv (traces/reports/report_csv.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bubblescope::traces {

/// The numbers of a whole step, with the names that read_report_numbers() gives them, as far as the
/// rows of the ranks say them. Empty if the text is not such a table, or has no rank's numbers.
/// Throws Error with the line of a cell that is not a number.
std::optional<std::map<std::string, double>> read_csv_report_numbers(std::string_view text,
                                                                     const std::string& file);

}  // namespace bubblescope::traces
