// Measured iterations, which `analyze` adds to the bubble report: each iteration, the replay error,
// and stragglers.
//
// As json, at the end of a report:
//   "iterations":64,
//   "per_iteration":[{"iteration":0,"label":"dp 0 step 23","makespan_ns":...,"bubble_ratio":...,
//                     "replay_error":0.0021}, ...],
//   "replay_error":{"p50":...,"p95":...,"max":...},
//   "stragglers":{"stages":[{"stage":3,"rank":3,"kind":"F","median_ns":...,"slowness":2.05}, ...],
//                 "outliers":[{"iteration":12,"rank":1,"op":"1F2","duration_ns":...,
//                              "median_ns":...}, ...]},
//   "causes":[...], see traces/reports/cause_text.h,
//   "slowdown":{"S":1.177,"by_kind":{"F":...,"B":...},
//               "by_worker":[{"replica":0,"rank":3,"S":...}, ...],"by_stage":[...],
//               "M_W":...,"M_S":...},
//   "notes":["..."],
//   "step_ns":2214338906,
//   "steps":[{"step":23,"step_ns":...,"pipeline_ns":...}, ...],
//   "outside_pipeline_ns":{"grads-reduce-scatter":...,"optimizer":...},
//   "trust":{"replay_error":0.0021,"verdict":"good","why":[]}
// Of a step that broke off, "stragglers", "causes" and "slowdown" are null; where nothing may be
// concluded, "bubble_ratio" is, too. "step_ns" is the mean over the steps of the slowest replica's
// whole step; where a trace has nothing besides the pipeline's ops, it is their makespan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/causes.h"
#include "sim/analysis/slowdown.h"
#include "sim/analysis/stragglers.h"
#include "traces/files/trace_format.h"
#include "traces/measured/trust.h"

namespace bubblescope::traces {

struct IterationRow {
  std::string label;
  Nanos makespan = 0;
  std::optional<double> bubble_ratio;  ///< nothing where nothing may be concluded
  double replay_error = 0;             ///< a fraction of the makespan
};

/// All measured steps of one pipeline.
struct Iterations {
  std::vector<IterationRow> rows;  ///< at least one
  /// Nothing of steps that broke off, or from which nothing may be concluded.
  std::optional<StragglerReport> stragglers;
  std::optional<SlowdownReport> slowdown;  ///< the same; and nothing where steps lack a replica
  std::optional<CauseReport> causes;       ///< the same
  std::vector<std::string> left_out;       ///< files that are no traces, in sentences
  std::vector<std::string> notes;          ///< of the reader, in sentences
  std::vector<WholeStep> whole_steps;      ///< empty of whole steps that files hold
  Trust trust;
};

/// The mean of the whole steps, or of the makespans where there are none.
Nanos compute_mean_step(const Iterations& iterations);

/// The same without bubbles, stragglers and slowdown, for a verdict of none.
Iterations remove_conclusions(Iterations iterations);

/// Writes the members above, without braces around them.
std::string write_iterations_json(const Iterations& iterations);

/// What the report begins with where files were left out; empty elsewhere.
std::string write_left_out_text(const Iterations& iterations);

/// step         2.214 s  whole, of the slowest replica: mean of 32 steps
/// pipeline     2.013 s  of it, from the first op to the last; besides: optimizer 43.22 ms, ...
///              (makespan below: mean of all replicas)
///
/// The first lines of the totals; empty where steps are what the report shows anyway: a single
/// replica's ops, and nothing besides them.
std::string write_whole_step_text(const Iterations& iterations);

/// 64 iterations: 1.95 s to 2.31 s; drawn is the median one, all numbers are means
/// replay:   off by 0.12 % (median), 0.13 % (max) with the measured order and durations
/// cause:    unequal stages: stage 3 (rank 3) has 1.41 x the mean stage's work
///           with the same work in equal stages, the step would be 298 ms shorter (13.5 %)
/// slowdown: S 1.174: ...
/// slow:     F of stage 3 (rank 3): 140.1 ms, 2.07 x the others' 67.63 ms
std::string write_iterations_text(const Iterations& iterations);

}  // namespace bubblescope::traces
