// The result of one rank in one step, in a form that can be sent to the other processes.
#pragma once

#include <vector>

#include "exec/runtime/backend.h"
#include "exec/runtime/blob.h"

namespace bubblescope::exec {

/// A rank's result and the messages that it received.
struct RankPart {
  RankResult result;
  std::vector<Span> arrivals;  ///< messages from other ranks; start and end are the arrival
};

Blob to_bytes(const RankPart& part);

/// The inverse of to_bytes(). Throws Error for malformed bytes.
RankPart read_part(const Blob& bytes);

/// Returns the part of a rank that does not answer.
RankPart missing_part(std::int32_t rank, AbortReason reason);

/// The reason of the lowest aborted rank; kNone if the step is complete.
AbortReason find_abort_reason(const std::vector<RankPart>& parts);

/// Adds a failure to the parts of ranks that are gone. A rank may send its part of an aborted step
/// and then die; without this, the message would not name it. `gone` is by rank.
std::vector<RankPart> fail_gone_ranks(std::vector<RankPart> parts, const std::vector<bool>& gone);

/// The results of all parts, by rank.
std::vector<RankResult> take_results(std::vector<RankPart> parts);

/// Sets the end of every message to the time at which it arrived.
void set_arrivals(std::vector<RankPart>& parts, const Program& program);

}  // namespace bubblescope::exec
