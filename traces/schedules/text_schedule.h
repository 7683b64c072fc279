// The text form of a schedule: for eyes, for tests and for writing one by hand.
//
//   0F0 0F1 0B0 0B1    # one rank per line, ops with blanks between them, comments after #
//   1F0 1B0 1F1 1B1
//   0F0 0F1 | 1F0 1F1  # or several ranks on a line
//   _ 1F0 2F0.1 2R0 (0F7;7B3)OVERLAP_F_B    # an idle slot; slice 1; a recomputation; a pair
#pragma once

#include <string>
#include <string_view>

#include "sim/ir/schedule.h"

namespace bubblescope::traces {

/// Reads the text form; the shape and the placement follow from the ops (infer_schedule).
/// The schedule is named after the file. Throws Error: file, rank, op and text of the first fault.
Schedule parse_schedule_text(std::string_view text, const std::string& file = "text");

/// Writes one line per rank.
std::string write_schedule_text(const Schedule& schedule);

}  // namespace bubblescope::traces
