// When a step's ops run, straight from the schedule: the rules of compute ops and copies, rank by
// rank, without a Program. The judge of lowering and of the dataflow pass.
#pragma once

#include <map>
#include <string>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"

namespace bubblescope {

struct OpTime {
  Nanos start = 0;
  Nanos end = 0;

  bool operator==(const OpTime&) const = default;
};

/// By the name of the op. For schedules without overlapped pairs and replicas that do not deadlock;
/// every rank has its own link to the host.
std::map<std::string, OpTime> interpret_copies(const Schedule& schedule, const CostModel& costs);

}  // namespace bubblescope
