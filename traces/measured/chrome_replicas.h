// Data-parallel replicas that the ops of a Chrome trace state in their arguments: args.dp_rank,
// args.dp, args.data_parallel_rank, args.replica.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/measured/chrome_ranks.h"

namespace bubblescope::traces {

/// The replica of every op; nothing if no op states one. An op that states none is of the replica
/// of its thread, of its process or of the file, if the others there state the same one. Throws
/// Error where they do not.
std::vector<std::int32_t> find_stated_replicas(const ChromeEvents& events,
                                               const std::vector<ChromeOp>& ops,
                                               const std::string& file);

}  // namespace bubblescope::traces
