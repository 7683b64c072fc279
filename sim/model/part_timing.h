// The timing of parts on the lanes of one rank.
//
// A lane runs its parts in the order in which they are given. A part starts when it heads its lane,
// all parts that it waits for have ended, and all parts of earlier windows have ended. While it
// runs, busy lanes beside it may slow it down.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/model/op_parts.h"

namespace bubblescope::inline sim {

/// A part that is to be timed.
struct LanePart {
  PartLane lane = kComputeLane;
  Nanos alone = 0;                        ///< its time while no other lane is busy
  std::vector<std::uint32_t> after = {};  ///< indices of the parts that it waits for
  std::uint32_t window = 0;               ///< never less than that of a part before it
};

inline constexpr std::uint32_t kNoPart = 0xffffffffu;

/// When a part runs, from the start of the first one.
struct PartInterval {
  Nanos start = 0;
  Nanos end = 0;
  std::uint32_t released_by = kNoPart;  ///< a part at whose end it could start; none: at the start
};

/// The intervals of all parts, or the parts that head their lanes and can never start.
struct PartTiming {
  std::vector<PartInterval> intervals;  ///< like the parts
  std::vector<std::uint32_t> blocked = {};
};

/// Times parts. Linear in their number and in what they wait for, unless many parts without time
/// end at one moment.
PartTiming time_parts(std::span<const LanePart> parts, const LaneContention& contention);

/// A time that counts to one part: the compute lane runs it, or does nothing and waits for it.
struct PartShare {
  std::uint32_t part = 0;
  Nanos start = 0;
  Nanos end = 0;
};

/// The shares of the parts, which fill the time from the first start to the last end without gaps.
std::vector<PartShare> divide_time(std::span<const LanePart> parts,
                                   std::span<const PartInterval> intervals);

}  // namespace bubblescope::inline sim
