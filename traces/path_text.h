// The critical path in a few lines.
#pragma once

#include <string>

#include "traces/format.h"

namespace bubblescope {

/// critical path: 22 ops, 6 hops:  F 11 ms  B 22 ms  messages 0 ms  most on
/// rank 3: 24 ms
///   0F0 → 1F0 → 2F0 → 3F0 … 3B7 (16 ops, 24 ms) → 2B7 → 1B7 → 0B7
///
/// An arrow is a hop to another rank; consecutive ops of a rank are one entry. Only the two ends of
/// a path with many hops are shown. "waiting" is time that no instruction of the path covers:
/// measured timelines have some.
std::string path_text(const Recording& recording, int width);

}  // namespace bubblescope
