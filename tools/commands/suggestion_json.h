// Writes what `check --suggest` suggests as json: the text that it prints, and each move.
#pragma once

#include <optional>

#include "sim/analysis/suggest_receives.h"
#include "sim/analysis/suggest_sends.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

/// Adds the members of a suggestion, which is of receives alone or of sends; none where there is
/// neither. Each move refers to the lists as the one before left them.
void write_suggestion(traces::JsonWriter& json, const std::optional<ReceiveSuggestion>& receives,
                      const std::optional<SendSuggestion>& sends);

}  // namespace bubblescope::tools
