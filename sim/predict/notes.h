// Notes: what a user should know about a prediction that is right but may not be what was meant.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/predict/models.h"

namespace bubblescope::inline sim {

enum class Note : std::uint8_t {
  /// The schedule splits backwards, and its halves take other times than the full backward.
  kUnequalBackwards,
  /// The cap is a number of the user's unit, although activations have bytes.
  kCapInUnits,
  /// The cost file has another number of stages than the schedule; they were cut or joined evenly.
  kRestaged,
  /// The cost file has pairs that are shorter than their two ops, and the schedule has no pairs.
  kNoPairs,
};

/// Returns the notes on the costs of a schedule's ops.
std::vector<Note> find_cost_notes(const Schedule& schedule, const Config& config);

/// Returns the notes on a prediction: those on its costs, then those on its memory.
std::vector<Note> find_notes(const Schedule& schedule, const MemoryModel& memory,
                             const Config& config);

}  // namespace bubblescope::inline sim
