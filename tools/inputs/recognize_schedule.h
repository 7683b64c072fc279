// Recognizes the schedule of a measured order, because traces do not name it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/ir/schedule.h"

namespace bubblescope::tools {

/// Returns the registered schedule that runs these ops in this order, by any framework's rules.
/// Where several do, because a schedule of several chunks or slices is run with one, it is the
/// schedule made for this shape: "gpipe", not "bfs". Schedules that search for an order come last,
/// with the order that they find for the usual costs, and only for small shapes.
std::optional<std::string> recognize_schedule(const Schedule& schedule);

/// Returns the name of the schedule that each of a step's runs follows, where `runs` equal runs of
/// it make the step; nullopt where they do not.
std::optional<std::string> recognize_runs(const Schedule& schedule, std::int32_t runs);

}  // namespace bubblescope::tools
