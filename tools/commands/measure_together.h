// Measures several programs side by side, so that drift of the machine hits all alike: after a
// common warm-up, every program is measured in two blocks with the other programs in between.
//
//   warm-up   A B C A B C ...        until --warmup steps of each and two seconds have passed, and
//                                    the device's clock is steady
//   block 1   A B C A B C            in one process, where all fit a device: step by step;
//   block 2   C B A C B A            else AA BB CC, AA BB CC, each time set up again
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// A program to measure; not an owner.
struct Measurable {
  const ValidSchedule& schedule;
  const Program& program;
  const RunContext& context;
};

/// Called with a program's index when its first block is complete, and again when its measurement
/// is. If there is one block, it is called once.
using OnMeasured = std::function<void(std::size_t index, const Measurement& measurement)>;

/// Returns the measurements in the order of the programs, with RunOptions::steps steps each; the
/// first half of them is the first block. Serial references are shared. All must have the same
/// backend. If a run breaks down, the measurements end with it.
std::vector<Measurement> measure_together(std::span<const Measurable> programs,
                                          const OnMeasured& on_measured);

}  // namespace bubblescope::tools
