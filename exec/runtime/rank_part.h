// What one rank did in a step, as bytes for the other processes.
#pragma once

#include <vector>

#include "exec/runtime/backend.h"
#include "exec/runtime/blob.h"

namespace bubblescope::exec {

/// A rank's own part of a step.
struct RankPart {
  RankResult result;
  std::vector<Span> arrivals;  ///< of messages from other ranks; they start where they arrive
};

Blob to_bytes(const RankPart& part);

/// Throws Error for bytes that are no part.
RankPart read_part(const Blob& bytes);

/// What is known of a rank that does not answer.
RankPart missing_part(std::int32_t rank, AbortReason reason);

/// Why a step was stopped, as the first rank that was says.
AbortReason find_abort_reason(const std::vector<RankPart>& parts);

/// The parts of a stopped step, in which ranks have failed that told theirs and are gone since: who
/// is told to stop because of a death must know whose. `gone` is by rank.
std::vector<RankPart> fail_gone_ranks(std::vector<RankPart> parts, const std::vector<bool>& gone);

/// The results of all parts, by rank.
std::vector<RankResult> take_results(std::vector<RankPart> parts);

/// A message ends when it arrives.
void set_arrivals(std::vector<RankPart>& parts, const Program& program);

}  // namespace bubblescope::exec
