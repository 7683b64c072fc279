// The findings on all measured steps of a job, in numbers. The file of its median step keeps them,
// so that two runs can be compared (traces/timelines/job_summary_json.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/slowdown.h"
#include "sim/ir/units.h"

namespace bubblescope::traces {

/// A cause of long steps (sim/analysis/causes.h) by its names in reports.
struct SavedCause {
  std::string cause;  ///< "worker"
  std::string where;  ///< "rank 1 of replica 0"
  Nanos saves = 0;    ///< of the mean step, without it
};

struct JobSummary {
  std::int64_t iterations = 1;
  std::optional<Nanos> step = {};  ///< the mean whole step; empty: not known
  double replay_error = 0;         ///< a fraction
  std::string verdict;             ///< "good", "limited", "none"
  std::vector<std::string> why;
  bool lacks_replicas = false;                    ///< data-parallel replicas have no trace
  std::optional<std::vector<SavedCause>> causes;  ///< the largest first; empty: not known
  std::optional<double> slowdown;                 ///< S; empty: not known, nor is that of workers
  std::vector<WorkerSlowdown> workers;
};

/// Returns false if the report showed no conclusions (traces/measured/trust.h).
inline bool is_trusted(const JobSummary& job) { return job.verdict != "none"; }

}  // namespace bubblescope::traces
