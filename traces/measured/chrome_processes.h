// Numbers the processes of a Chrome trace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

struct ProcessRank {
  std::optional<std::int32_t> rank;
  bool is_stated = false;  ///< its name calls it a rank: "rank 3"
  bool is_device = false;  ///< ... a device: "GPU 3"
};

/// The ranks of these processes: the numbers in all their names, if they differ; else their places
/// by sort_index, likewise; else their pids, or the numbers in these.
std::map<std::string, ProcessRank> rank_processes(const ChromeEvents& events,
                                                  const std::set<std::string>& pids);

/// The processes in the order of their ranks, those without one last.
std::vector<std::string> order_processes(const std::map<std::string, ProcessRank>& ranks);

}  // namespace bubblescope::traces
