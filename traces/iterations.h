// Measured iterations, which `analyze` adds to the bubble report: each iteration, the replay error,
// and stragglers.
//
// As json, at the end of a report:
//   "iterations":64,
//   "per_iteration":[{"iteration":0,"label":"dp 0 step 23","makespan_ns":...,"bubble_ratio":...,
//                     "replay_error":0.0021}, ...],
//   "replay_error":{"p50":...,"p95":...,"max":...},
//   "stragglers":{"slowdown":1.37,"replayed_ns":...,"even_ns":...,
//                 "stages":[{"stage":3,"rank":3,"kind":"F","median_ns":...,"slowness":2.05}, ...],
//                 "without_rank_ns":[...],"without_kind_ns":{"F":...,"B":...},
//                 "outliers":[{"iteration":12,"rank":1,"op":"1F2","duration_ns":...,
//                              "median_ns":...}, ...]},
//   "slowdown":{"S":1.177,"by_kind":{"F":...,"B":...},
//               "by_worker":[{"replica":0,"rank":3,"S":...}, ...],"by_stage":[...],
//               "M_W":...,"M_S":...},
//   "notes":["..."],
//   "step_ns":2214338906,
//   "steps":[{"step":23,"step_ns":...,"pipeline_ns":...}, ...],
//   "outside_pipeline_ns":{"grads-reduce-scatter":...,"optimizer":...},
//   "trust":{"replay_error":0.0021,"verdict":"good","why":[]}
// "stragglers" and "slowdown" are null for a step that did not complete. "step_ns" is the mean over
// the steps of the slowest replica's whole step; where a trace has nothing besides the pipeline's
// ops, it is their makespan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/slowdown.h"
#include "sim/analysis/stragglers.h"
#include "traces/trace_format.h"
#include "traces/trust.h"

namespace bubblescope {

struct IterationRow {
  std::string label;
  Nanos makespan = 0;
  double bubble_ratio = 0;
  double replay_error = 0;  ///< a fraction of the makespan
};

/// All measured steps of one pipeline.
struct Iterations {
  std::vector<IterationRow> rows;             ///< at least one
  std::optional<StragglerReport> stragglers;  ///< empty for steps that did not complete
  std::optional<SlowdownReport> slowdown;     ///< empty for steps that did not complete
  std::vector<std::string> notes;             ///< from the reader, whole sentences
  std::vector<WholeStep> whole_steps;         ///< empty where files hold whole steps
  Trust trust;
};

/// The mean of the whole steps, or of the makespans where there are none.
Nanos mean_step(const Iterations& iterations);

/// The value below which a fraction of the replay errors lies, from the sorted values.
double replay_error_quantile(const Iterations& iterations, double quantile);

/// Writes the members above, without braces around them.
std::string write_iterations_json(const Iterations& iterations);

/// step         2.21 s  mean of 32; its pipeline 2.01 s; besides it grads-reduce-scatter 55.4 ms,
///                      optimizer 42.4 ms, ...
/// This is the first line of the totals. It is empty where the report shows the step anyway: one
/// replica, and nothing besides the pipeline's ops.
std::string write_whole_step_text(const Iterations& iterations);

/// 64 iterations: 1.95 s to 2.31 s, shown is their mean; a replay misses 0.01 % (p95 0.02 %)
///
/// slowest op kinds: F of stage 3 (rank 3) 139 ms, 2.05 x the others
/// what if: every op at its kind's median  1.36 s  -32.5 %
///          rank 3 at the others' median   1.40 s  -30.1 %
std::string write_iterations_text(const Iterations& iterations);

}  // namespace bubblescope
