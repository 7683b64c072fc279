// Whether the ranks of a workload fit together: every message has a partner of its size, every
// collective is the same on all its ranks, and no order hangs.
//
//   rank 0: l2 (line 5) sends 16 bytes to rank 1 with tag 7, where l1 (line 9) receives 8
//
// Messages match by source, destination and tag; where several have these in common, the n-th send
// of the file is taken to match the n-th receive. Collectives of a group match by their number.
#pragma once

#include <cstddef>
#include <string>

#include "sim/ir/error.h"
#include "traces/workloads/workload.h"

namespace bubblescope::traces {

struct WorkloadVerdict {
  Problems problems;  ///< jobs that do not fit together
  /// A job that waits for ever, or jobs that wait for each other, in words; empty where no
  /// hang was found, which is proof only without `wildcards`: if messages are buffered (eager), and
  /// if a send ends only once its receive is posted (rendezvous).
  std::string eager_hang;
  std::string rendezvous_hang;
  std::size_t jobs = 0;
  std::size_t messages = 0;  ///< pairs of a send and a receive
  std::size_t collectives = 0;
  std::size_t shared_matches = 0;  ///< messages that share source, destination and tag with others
  std::size_t wildcards = 0;  ///< receives from any rank or with any tag, which are not matched
};

WorkloadVerdict check_workload(const Workload& workload);

}  // namespace bubblescope::traces
