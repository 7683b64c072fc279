// Pictures for the terminal: a step over time, and a schedule as a grid with its problems marked.
#pragma once

#include <string>

#include "sim/ir/error.h"
#include "traces/files/format.h"

namespace bubblescope::traces {

struct DrawOptions {
  int width = 80;          ///< columns of the terminal; titles and legends may need 80
  bool colour = false;     ///< ANSI colours: for terminals only, and not under NO_COLOR
  bool fit = false;        ///< for terminals: no line exceeds the width; tables leave columns out
  bool all_ranks = false;  ///< shows every rank; otherwise at most 16
};

/// The timeline, one row per rank:
///
///     ms  ╷0        ╷5        ╷10       ╷15       ╷20       ╷25       ╷30
/// rank 0  F0F1F2F3············B0──F4B1──F5B2──F6B3──F7B4──··B5──··B6──··B7──
/// rank 1  ··F0F1F2········B0──F3B1──F4B2──F5B3──F6B4──F7B5──··B6──··B7──····
/// rank 2  ····F0F1····B0──F2B1──F3B2──F4B3──F5B4──F6B5──F7B6──··B7──········
/// rank 3  ······F0B0──F1B1──F2B2──F3B3──F4B4──F5B5──F6B6──F7B7──············
/// F forward  B backward  · idle  ─ continues
///
/// A cell is an op: its kind, its micro-batch where that fits (its last digits where it does not),
/// and a line as long as it lasts, double for the two ops of an overlapped pair. Lower case: odd
/// chunks of a rank, or its stage of the second pipeline. With colours a cell holds only the
/// micro-batch, in bold where it is odd; odd chunks are lighter, overlapped pairs underlined.
///
/// A step wider than the terminal continues in further bands, like lines of text. One that would
/// need too many bands is drawn in a single one, whose columns hold several ops each; kinds then
/// fill columns in proportion to their time.
std::string draw_timeline(const StepRecord& record, const DrawOptions& options = {});

/// Draws the orders as a grid that marks the cells with problems, followed by the problems.
/// Schedules with posted messages show those too. Long rows are cut to the part around their first
/// problem; a rank whose problem has no position, such as a missing op, is marked "!".
///
/// rank 0   0F0   0F1   0B0   0B1
/// rank 1   1F0  >1B1<  1F1   1B0
///
/// rank 1, position 1: 1B1 runs before its forward 1F1; move it after
std::string draw_grid(const Schedule& schedule, const Problems& problems,
                      const DrawOptions& options = {});

}  // namespace bubblescope::traces
