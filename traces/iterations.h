// What `analyze` tells beyond the report: the iterations one by one, how well a replay meets them,
// who is slow.
//
// As json, to stand at the end of a report:
//   "iterations":64,
//   "per_iteration":[{"iteration":0,"label":"dp 0 step 23","makespan_ns":...,"bubble_ratio":...,
//                     "replay_error":0.0021}, ...],
//   "replay_error":{"p50":...,"p95":...,"max":...},
//   "stragglers":{"slowdown":1.37,"replayed_ns":...,"even_ns":...,
//                 "stages":[{"stage":3,"rank":3,"kind":"F","median_ns":...,"slowness":2.05}, ...],
//                 "without_rank_ns":[...],"without_kind_ns":{"F":...,"B":...},
//                 "outliers":[{"iteration":12,"rank":1,"op":"1F2","duration_ns":...,
//                              "median_ns":...}, ...]},
//   "notes":["..."]
// Of a step that broke off, "stragglers" is null.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/stragglers.h"

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
  std::optional<StragglerReport> stragglers;  ///< nothing of steps that broke off
  std::vector<std::string> notes;             ///< of the reader, in sentences
};

/// The value below which a fraction of the replay errors lies, from the sorted values.
double replay_error_quantile(const Iterations& iterations, double quantile);

/// The members above, without braces around them.
std::string write_iterations_json(const Iterations& iterations);

/// 64 iterations: 1.95 s to 2.31 s, shown is their mean; a replay misses 0.01 % (p95 0.02 %)
///
/// slowest op kinds: F of stage 3 (rank 3) 139 ms, 2.05 x the others
/// what if: every op at its kind's median  1.36 s  -32.5 %
///          rank 3 at the others' median   1.40 s  -30.1 %
std::string write_iterations_text(const Iterations& iterations);

}  // namespace bubblescope
