// An independent interpreter of posted messages: the rules of docs/messages.md, step by step in
// unit time, without instructions, lanes or edges.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/ir/lower.h"
#include "sim/model/cost_model.h"

namespace bubblescope::tests {

/// From "1B0" to its start; empty after a deadlock.
using Starts = std::optional<std::map<std::string, Nanos>>;

/// Runs the posted lists of a schedule: compute ops, sends and receives, no overlapped pairs. Waits
/// for sends must be at the end, where they block nothing.
Starts interpret(const Schedule& schedule, const LowerOptions& options, const CostModel& costs);

}  // namespace bubblescope::tests
