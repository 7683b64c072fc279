// Writes what `analyze` adds to the bubble report of measured steps: each iteration, the replay
// error, stragglers and causes.
//
// As json, at the end of a report:
//   "iterations":64,
//   "per_iteration":[{"iteration":0,"label":"replica 0 step 23","makespan_ns":...,
//                     "bubble_ratio":...,"replay_error":0.0021}, ...],
//   "replay_error":{"p50":...,"p95":...,"max":...},
//   "stragglers":{"stages":[{"stage":3,"rank":3,"kind":"F","median_ns":...,"slowness":2.05}, ...],
//                 "outliers":[{"iteration":12,"rank":1,"op":"1F2","duration_ns":...,
//                              "median_ns":...}, ...]},
//   "causes":[...],"causes_together_ns":..., see traces/reports/cause_text.h,
//   "slowdown":{"S":1.179,"replayed_ns":...,"fixed_ns":...,
//               "by_kind":{"F":...,"B":...,"SEND_F":...,"optimizer":...},
//               "by_worker":[{"replica":0,"rank":3,"S":...}, ...],"by_replica":[...],
//               "by_stage":[...],
//               "by_step":[{"step":23,"S":[...]}, ...], with the workers in the order of by_worker,
//               "M_W":...,"M_S":...},
//   "notes":["..."],
//   "step_ns":2214338906,
//   "steps":[{"step":23,"step_ns":...,"pipeline_ns":...}, ...],
//   "between_steps_ns":..., "longest_between_steps":{"ns":..., "after_step":4}, null where steps do
//   not follow each other,
//   "step_period":{"ns":...,"overlap_ns":...,"idle":0.055}, null likewise,
//   "outside_pipeline_ns":{"grads-reduce-scatter":...,"optimizer":...},
//   "lacks_replicas":false, whether replicas of the job have no trace
//   "trust":{"replay_error":0.0021,"verdict":"good","why":[]}
// "stragglers", "causes" and "slowdown" are null if steps are incomplete; "bubble_ratio" is null,
// too, if the report has no conclusions. "step_ns" is the mean over the steps of the slowest
// replica's whole step, or of its makespan if the trace has only the pipeline's ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/causes.h"
#include "sim/analysis/slowdown.h"
#include "sim/analysis/stragglers.h"
#include "traces/files/trace_format.h"
#include "traces/measured/trust.h"
#include "traces/reports/step_period.h"

namespace bubblescope::traces {

struct IterationRow {
  std::string label;
  Nanos makespan = 0;
  std::optional<double> bubble_ratio;  ///< empty if there are no conclusions
  double replay_error = 0;             ///< a fraction of the makespan
};

/// The times from the last op of a step to the first op of the next one.
struct BetweenSteps {
  Nanos mean = 0;
  Nanos median = 0;
  Nanos longest = 0;
  std::int64_t longest_after = 0;  ///< the step before it
  std::int64_t pairs = 0;          ///< of steps that follow each other, over which the mean is
};

/// All measured steps of one pipeline.
struct Iterations {
  std::vector<IterationRow> rows;  ///< at least one
  std::int64_t replicas = 1;       ///< of the pipeline, that the steps were measured on
  /// Empty if steps are incomplete, or if there are no conclusions.
  std::optional<StragglerReport> stragglers;
  /// Also empty if steps lack a replica, or if no cause can be identified.
  std::optional<SlowdownReport> slowdown;
  std::optional<CauseReport> causes;       ///< also empty if steps lack a replica
  std::vector<std::string> left_out;       ///< sentences about files that are not traces
  std::vector<std::string> notes;          ///< sentences from the reader
  std::vector<std::int64_t> step_numbers;  ///< those of the slowdown's steps, in its order
  std::optional<BetweenSteps> between_steps;
  std::optional<StepPeriod> step_period;
  std::vector<WholeStep> whole_steps;  ///< empty if files hold only the pipeline's ops
  bool lacks_replicas = false;         ///< data-parallel replicas of the job have no trace
  bool lacks_ranks = false;            ///< ranks of the pipeline have no trace
  Trust trust;
};

/// The mean time of the whole steps, or of the makespans if there are no whole steps.
Nanos compute_mean_step(const Iterations& iterations);

/// The same; nullopt if nothing says whether a range around the ops of a step is the step.
std::optional<Nanos> find_known_step(const Iterations& iterations);

/// Whether steps were measured on several replicas of the pipeline.
bool has_replicas(const Iterations& iterations);

/// Removes bubbles, stragglers and slowdown, for reports with the verdict kNone.
Iterations remove_conclusions(Iterations iterations);

/// Writes the members above, each on a line of its own.
void write_iterations_json(JsonWriter& json, const Iterations& iterations);

/// Writes the first lines of the report, which name the files that were left out; empty if there
/// are none.
std::string write_left_out_text(const Iterations& iterations);

/// step         2.214 s  whole, of the slowest replica: mean of 32 steps
/// pipeline     2.013 s  of it, from the first op to the last; besides: optimizer 43.22 ms, ...
///              (makespan below: mean of all replicas)
///
/// Writes the first lines of the totals. Empty if a step is just the ops of a single replica, which
/// the report shows anyway.
std::string write_whole_step_text(const Iterations& iterations);

/// 64 iterations: 1.95 s to 2.31 s; drawn is the median one, all numbers are means
/// between:  41.2 ms from the last op of a step to the first of the next, in the mean
/// replay:   off by 0.12 % (median), 0.13 % (max) with the measured order and durations
/// cause:    unequal stages: stage 3 (rank 3) has 1.41 x the mean stage's work
///           with the same work in equal stages, the step would be 298 ms shorter (13.5 %)
/// slowdown: S 1.174: ...
/// slow:     F of stage 3 (rank 3): 140.1 ms, 2.07 x the others' 67.63 ms
std::string write_iterations_text(const Iterations& iterations);

}  // namespace bubblescope::traces
