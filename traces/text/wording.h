// Words and numbers that all reports for people share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/fit_noise.h"
#include "sim/ir/counted.h"
#include "sim/ir/schedule.h"

namespace bubblescope::traces {

/// Returns a text such as "1", "1 and 3" or "1, 3 and 4".
std::string list_words(const std::vector<std::string>& words);

/// Returns a text such as "4 ranks, 2 chunks each, 8 micro-batches".
std::string shape_text(const Shape& shape);

/// "rank 3", or "rank 3 of replica 0" where there are several replicas.
std::string name_worker(const Worker& worker, bool has_replicas);

/// "12.50" becomes "12.5", "3.00" becomes "3".
std::string trim_zeros(std::string number);

/// Returns a text such as "27.3 %", "0 %" or "<0.1 %": it has one decimal, and is 0 only for
/// exactly 0.
std::string format_percent(double fraction);

/// Returns the width of a text on a terminal: one column per UTF-8 character, none for colours.
int measure_columns(std::string_view text);

/// Lays out `entries` in lines of at most `width` columns, each starting with `indent`. An entry
/// that does not fit starts a new line, with the non-blank part of `separator`.
std::string wrap(const std::vector<std::string>& entries, std::string_view indent,
                 std::string_view separator, int width);

}  // namespace bubblescope::traces
