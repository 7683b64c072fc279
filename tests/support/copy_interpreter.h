// An independent interpreter of compute ops and copies: computes when a step's ops run, rank by
// rank, without a Program. Tests compare lowering and the dataflow pass with it.
#pragma once

#include <map>
#include <string>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"

namespace bubblescope::tests {

struct OpTime {
  Nanos start = 0;
  Nanos end = 0;

  bool operator==(const OpTime&) const = default;
};

/// By op name. For schedules without overlapped pairs and replicas that do not deadlock; every rank
/// has its own link to the host.
std::map<std::string, OpTime> interpret_copies(const Schedule& schedule, const CostModel& costs);

}  // namespace bubblescope::tests
