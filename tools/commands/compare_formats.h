// The rows of compare as data.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/compare_noise.h"
#include "tools/commands/compare_rows.h"

namespace bubblescope::tools {

/// The reports of the rows that have a step.
std::vector<NamedReport> collect_reports(const std::vector<ComparedRow>& rows);

/// A line per row; refused rows have their reason.
std::string write_rows_csv(const std::vector<ComparedRow>& rows);

std::string write_rows_json(const std::vector<ComparedRow>& rows);

}  // namespace bubblescope::tools
