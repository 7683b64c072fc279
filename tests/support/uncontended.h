// Durations with nothing shared, for the dataflow pass.
#pragma once

#include <vector>

#include "sim/model/traffic.h"

namespace bubblescope::tests {

inline std::vector<Nanos> uncontended_durations(const Traffic& traffic) {
  std::vector<Nanos> durations = traffic.fixed;
  for (const Flow& flow : traffic.flows)
    durations[flow.instruction] += uncontended_time(flow.load, flow.max_rate);
  return durations;
}

}  // namespace bubblescope::tests
