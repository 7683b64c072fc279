// A second opinion on posted messages: the rules of docs/messages.md played step by step in unit
// time, without instructions, lanes or edges.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/ir/lower.h"
#include "sim/model/cost_model.h"

namespace bubblescope {

/// "1B0" -> its start; nothing after a deadlock.
using Starts = std::optional<std::map<std::string, Nanos>>;

/// Plays the posted lists of a schedule: computes, sends and receives, no overlapped pairs. Waits
/// for sends must stand behind all else, where they hold nothing up.
Starts interpret(const Schedule& schedule, const LowerOptions& options, const CostModel& costs);

}  // namespace bubblescope
