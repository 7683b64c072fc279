// Makes and prints heat maps of workers by steps.
//
// workers:  how much longer each makes a step, a column per step from 0 to 31
//           rank 3 of replica 0  ##*#####################+#######
//           rank 3 of replica 1  ++..+..++++..+++.++.++++.+++++.+
//           . under 2 %  + under 10 %  * under 25 %  # from 25 %; 6 other workers stay under 2 %
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/analysis/slowdown.h"
#include "traces/files/worker_map.h"

namespace bubblescope::traces {

struct WorkerMapSize {
  std::size_t rows = 0;
  std::size_t columns = 0;
};

/// Makes the map of a report with several steps; empty if it has one step only. `steps` are the
/// steps' numbers. Where they need more than the most columns, neighbours share one.
WorkerMap make_worker_map(const SlowdownReport& slowdown, const std::vector<std::int64_t>& steps,
                          const WorkerMapSize& max_size);

/// Writes the map as above; empty if it has no rows.
std::string write_worker_map_text(const WorkerMap& map);

}  // namespace bubblescope::traces
