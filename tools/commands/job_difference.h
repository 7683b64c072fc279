// Compares what was found in the measured steps of two runs of a job: which causes cost more, or
// less, and which workers became slower.
//
//   causes, by what the mean step would save               A            B       change
//   worker: rank 2 of replica 1                            -     37.03 ms    +37.03 ms
//
//   workers, by S                                          A            B       change
//   rank 2 of replica 1                                1.000        1.086       +0.086
//
// As json, each by the size of its change; null where it is not known of both, and a cause that one
// of them does not have:
//   "causes":[{"cause":"worker","where":"rank 2 of replica 1","saves_ns":{"a":null,"b":37030000}},
//             ...],
//   "workers":[{"replica":1,"rank":2,"S":{"a":1.0,"b":1.086}}, ...]
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/fit_noise.h"
#include "traces/files/change_table.h"
#include "traces/files/job_summary.h"
#include "traces/json/json_writer.h"

namespace bubblescope::tools {

struct CauseChange {
  std::string cause;
  std::string where;             ///< in B; in A where B does not have the cause
  std::optional<Nanos> saves_a;  ///< empty: A does not have it
  std::optional<Nanos> saves_b;

  Nanos change() const { return saves_b.value_or(0) - saves_a.value_or(0); }
};

struct WorkerChange {
  Worker worker;
  std::optional<double> slowdown_a;  ///< S; empty: A does not have the worker
  std::optional<double> slowdown_b;

  double change() const { return slowdown_b.value_or(1) - slowdown_a.value_or(1); }
};

/// Both lists by the size of the change, the largest first; empty where a side does not know.
struct JobDifference {
  std::optional<std::vector<CauseChange>> causes;
  std::optional<std::vector<WorkerChange>> workers;
};

/// Compares causes of one kind at one place. A drift, late launches and slow steps are single
/// causes, whose place says when they happened or where they were worst: these are compared
/// wherever they are.
JobDifference compare_jobs(const traces::JobSummary& a, const traces::JobSummary& b);

/// The tables above, of causes that save 1 % of a step, and of workers whose S differs by 0.02.
std::vector<traces::ChangeTable> describe_job_difference(const JobDifference& difference,
                                                         const traces::JobSummary& a,
                                                         const traces::JobSummary& b);

std::string write_changes(const std::vector<traces::ChangeTable>& tables);

/// Writes the members above.
void write_job_difference_json(traces::JsonWriter& json, const JobDifference& difference);

}  // namespace bubblescope::tools
