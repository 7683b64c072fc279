// A lower bound: how fast any order of these ops on these ranks could be.
#pragma once

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// For every rank and every set of its ops: the earliest that one of them could start, plus all
/// their work, plus the shortest way from one of them to the end of the step. The largest of these,
/// and of all dependency chains, is a bound. Ops of a stage and kind are taken together.
/// Messages take what they take while nothing shares their links.
/// A given pairing of forward and backward is not held against other orders.
Nanos lower_bound(const Program& program, const Timeline& timeline);

}  // namespace bubblescope
