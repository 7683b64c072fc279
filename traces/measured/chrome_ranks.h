// Finds which rank of the pipeline ran each op of a Chrome trace, where neither the names of
// threads nor rules say it.
//
// Where ops state their data-parallel replica (chrome_replicas.h), each has ranks of its own. In
// each, the best evidence decides: args.pp_rank or args.rank, if all ops have one. Else threads, if
// the forwards of one process lie on several, because a rank runs its forwards on one thread: then
// each is a rank. Else processes, in the order of the numbers in their names, of their sort_index,
// or of their pids. Several ranks of a process may have the same args.pp_rank: see chrome_peers.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/op_names.h"

namespace bubblescope::traces {

struct ChromeOp {
  const ChromeSlice* slice = nullptr;
  NamedOp named;
};

/// The recorder of every op, in their order.
struct ChromeRanks {
  std::vector<Recorder> recorders;
  std::vector<std::int32_t> recorder_of;  ///< [op]
  std::vector<std::int32_t> replica_of;   ///< [recorder]
  Remarks remarks;
};

/// `replicas` are those that the ops state; nothing if they do not. Throws Error where threads are
/// ranks, but nothing says which rank ran an op, or whether they are ranks at all.
ChromeRanks find_chrome_ranks(const ChromeEvents& events, const std::vector<ChromeOp>& ops,
                              const std::vector<std::int32_t>& replicas, const std::string& file);

}  // namespace bubblescope::traces
