// The time of interleaved pairs by op. In the Program, the first op of such a pair lasts until its
// last part ends, and the second has the rest; but the parts of both take turns all the time:
//
//   lane        |=========== 0F7 ===========|= 7B3 =|
//   its parts   |F.attn|B.mlp|F.mlp|B.attn|F.rest|B.w|     F has 3 of these times, B too
//
// So what an op of a pair takes is divided by the turns of its run (part_run.h).
#pragma once

#include <array>
#include <map>

#include "sim/analysis/parts_report.h"
#include "sim/analysis/report.h"

namespace bubblescope::inline sim {

/// A time that is attributed to ops of one kind.
struct KindTime {
  OpKind kind = OpKind::kForward;
  Nanos time = 0;
};

/// Divides times of interleaved pairs. It refers to its arguments, which must outlive it.
class PairTimes {
 public:
  PairTimes(const Program& program, const Timeline& timeline, const PartsReport& parts);

  /// Whether an instruction is an op of an interleaved pair.
  bool covers(InstructionId id) const { return pair_of_.contains(id); }
  /// The shares of both ops in [from, to), a time in which an op of an interleaved pair runs. They
  /// add up to it exactly.
  std::array<KindTime, 2> divide(InstructionId id, Nanos from, Nanos to) const;
  /// Returns the shares of both ops in all of the op's time.
  std::array<KindTime, 2> divide(InstructionId id) const {
    return divide(id, timeline_.start[id], timeline_.end[id]);
  }

 private:
  Nanos first_time(const PlacedRun& placed, Nanos until) const;

  const Program& program_;
  const Timeline& timeline_;
  const PartsReport& parts_;
  std::map<InstructionId, const PlacedRun*> pair_of_;
};

/// Adds parts to a report, and counts the times of interleaved pairs under the kinds of their ops.
BubbleReport with_parts(BubbleReport report, const Program& program, const Timeline& timeline,
                        PartsReport parts);

}  // namespace bubblescope::inline sim
