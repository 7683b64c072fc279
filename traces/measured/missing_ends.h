// Finds ranks without a trace before the first or after the last of those that have one, by the
// orders and the messages of these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/build_step.h"

namespace bubblescope::traces {

/// Adds a remark where ranks after the last one are missing, given each rank's number of forwards
/// before its first backward. In 1F1B the last rank runs one, and each rank before it one more.
/// With one stage per rank, others (ZB-H2) differ by more from rank to rank, but the last one need
/// not run a second forward either.
ObservedTrace note_missing_last_ranks(ObservedTrace trace,
                                      const std::vector<std::int32_t>& warmups);

/// Adds a fault where a rank exchanges messages with one before the first or after the last. The
/// first stage receives no activation and sends no gradient; the last one receives no gradient and
/// sends no activation. With several chunks per rank, only the first stage's place is certain.
ObservedTrace note_messages_beyond_ends(ObservedTrace trace);

/// Describes a message between the last stage that was run and a next one, which none ran; nullopt
/// where there is none.
std::optional<std::string> describe_unrun_last_stage(const DraftStep& draft,
                                                     const TraceSource& source);

}  // namespace bubblescope::traces
