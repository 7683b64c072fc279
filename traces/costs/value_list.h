// Lists of values, one per micro-batch: sequence lengths, release times. A file has one value per
// line, or separated by blanks or commas; text from # to the end of a line is a comment. A json
// array is the same list.
//
//   # tokens of the sequences of the 4 micro-batches
//   8192 4096
//   4096 12288
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

/// Reads sequence lengths, in tokens; "-" is stdin. Throws Error with the place of the first fault.
std::vector<std::int64_t> read_lengths(const std::string& path);
std::vector<std::int64_t> parse_lengths(std::string_view text, const std::string& file);

/// Reads times, "18.5us" or numbers of milliseconds; "-" is stdin. Throws Error likewise.
std::vector<Nanos> read_release_times(const std::string& path);
std::vector<Nanos> parse_release_times(std::string_view text, const std::string& file);

}  // namespace bubblescope::traces
