// Finds the jobs of different ranks that belong together.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/workloads/workload.h"

namespace bubblescope::traces {

/// A job by its rank and its index there.
struct JobId {
  std::uint32_t rank = 0;
  std::uint32_t job = 0;

  friend auto operator<=>(const JobId&, const JobId&) = default;
};

struct WorkloadMatches {
  std::vector<std::pair<JobId, JobId>> messages;  ///< a send, and its receive
  std::vector<std::vector<JobId>> collectives;    ///< one job per rank of the group
  std::size_t shared = 0;                         ///< see WorkloadVerdict
  std::size_t wildcards = 0;
  Problems problems;  ///< jobs without a partner, or with one of another size or type
  /// The first job that waits for ever because it has no partner, in words; empty: none. With
  /// rendezvous, sends are among them.
  std::string eager_hang;
  std::string rendezvous_hang;
};

WorkloadMatches match_workload(const Workload& workload);

}  // namespace bubblescope::traces
