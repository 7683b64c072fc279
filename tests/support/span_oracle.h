// The shortest span of small zero-bubble schedules, by enumeration.
#pragma once

#include <cstdint>

namespace bubblescope::tests {

/// One stage per rank, F = I = W = 1, no latency, at most `cap` micro-batches held from F to W: the
/// least T such that every rank r, which starts at time r, can end at r + T.
/// Breadth first over what the ranks have done, for p <= 5, m <= 15; p = 3, m = 5 takes
/// milliseconds.
std::int32_t shortest_unit_span(std::int32_t ranks, std::int32_t microbatches, std::int32_t cap);

}  // namespace bubblescope::tests
