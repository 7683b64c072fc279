// The reasons for which a schedule cannot be built, as data instead of an Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope::inline sim {

/// Whether the number of chunks is the user's choice.
inline bool takes_chunks(const ScheduleDef& def) {
  return !def.implied_chunks || def.repeats_chunks;
}

/// Returns the shape with the schedule's own chunks and slices, where it says 1.
Shape fill_in_implied(const ScheduleDef& def, Shape shape);

/// The numbers that were asked for. In a Shape, 1 may also stand for the schedule's own.
struct StatedCounts {
  std::optional<std::int32_t> chunks = {};
  std::optional<std::int32_t> slices = {};
};

/// Throws Error where the schedule cannot have such a number in any shape.
void expect_counts(const ScheduleDef& def, const StatedCounts& stated);

/// Each reason in one sentence with the remedy; empty: build_schedule() succeeds. The shape must be
/// filled in.
std::vector<std::string> refuse_schedule(const ScheduleDef& def, const ScheduleRequest& request);

/// Why the schedule cannot be built under the profile in any shape: "megatron has no such
/// schedule"; empty where it can, and without a profile.
std::string refuse_profile(const ScheduleDef& def, Profile profile);

/// Whether the schedule searches for an order under the request's caps. Others have none, or caps
/// that are part of their name.
bool searches_under_caps(const ScheduleDef& def, ScheduleRequest request);

}  // namespace bubblescope::inline sim
