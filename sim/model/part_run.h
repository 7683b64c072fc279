// A run of the parts of an op, or of both ops of an overlapped pair, on the lanes of a rank.
//
// Ops of a rank run one after another, and an overlapped pair is one of them: nothing else runs on
// these lanes meanwhile. So a run is timed on its own, and the step takes its time as that of the
// op or pair.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/model/op_parts.h"
#include "sim/model/pair_order.h"

namespace bubblescope::inline sim {

/// A part of one of the ops, over all layers.
struct PartUse {
  std::string name;
  PartLane lane = kComputeLane;
  bool of_backward = false;  ///< of the second op of a pair
  Nanos exposed = 0;         ///< the compute lane waits for it and does nothing
  Nanos slowed = 0;          ///< it takes longer than alone, because other lanes are busy
};

/// One execution of a part.
struct PartSpan {
  std::size_t use = 0;  ///< index into PartRun::uses
  std::int32_t layer = 0;
  Nanos start = 0;
  Nanos end = 0;
};

/// A time that counts to one of the ops: its part computes, or the compute lane waits for it.
struct OpTurn {
  bool of_backward = false;
  Nanos end = 0;  ///< it begins at the end of the turn before it, the first one at 0
};

struct PartRun {
  Nanos time = 0;       ///< from the first start to the last end
  Nanos first_end = 0;  ///< the last end of a part of the first op
  std::vector<PartUse> uses = {};
  std::vector<PartSpan> spans = {};  ///< in the order in which their lanes run them
  std::vector<OpTurn> turns = {};    ///< by turns of both ops, until `time`

  Nanos exposed() const;
  Nanos slowed() const;
  /// Returns the part of [0, until) that counts to the first op.
  Nanos first_time(Nanos until) const;
};

/// Runs the parts of one op, each lane in the order of the list.
PartRun run_parts(const OpParts& op, const LaneContention& contention);

/// Throws Error where run_pair() would refuse the order for what it lists.
void expect_order(const OpParts& forward, const OpParts& backward, const PairOrder& order);

/// Runs the parts of an overlapped pair, which one host launches. Throws Error if the order lacks
/// parts, if it lists a part that its op must have and lacks, or if it makes parts wait for each
/// other.
PartRun run_pair(const OpParts& forward, const OpParts& backward, const PairOrder& order,
                 const LaneContention& contention);

}  // namespace bubblescope::inline sim
