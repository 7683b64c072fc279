// Writes what a measured step would take with other schedules, and without each cause.
//
// As json, in the report; "tries" is null where nothing can be predicted:
//   "tries":[{"schedule":"1f1b","microbatches":8,"step_ns":...,"p5_ns":...,"p95_ns":...,
//             "change":0.0,"change_p5":...,"change_p95":...,"peak_units":4.0,"memory_ratio":1.0,
//             "measured":true,"measured_ns":...},
//            {"schedule":"zb-h1","microbatches":8,"step_ns":..., ...,"best":true},
//            {"schedule":"zb-v","microbatches":16,"problem":"..."},
//            {"schedule":"interleaved","microbatches":8,"chunks":2, ...}, ...],
//   "without":[{"cause":"stage","where":"stage 3 (rank 3)","change":-0.13,"change_p5":...,
//               "change_p95":...}, ...],
//   "fit_error":0.003
// "change" compares times per micro-batch, so a step with more micro-batches may be longer and yet
// a gain. "chunks" are those per rank where they were chosen, by `vpp`. "fit_error" is the
// difference between the measured step and the same schedule with the fitted costs, which is the
// first of the tries. Texts show the measured step in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/causes.h"
#include "sim/ir/units.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// A number with its spread under the fitted noise.
struct Interval {
  double mean = 0;
  double p5 = 0;
  double p95 = 0;
};

/// One schedule with the fitted costs.
struct TryRow {
  std::string schedule;
  std::int32_t microbatches = 0;
  std::optional<std::int32_t> chunks = {};  ///< per rank, where they were chosen
  Interval step;                            ///< in nanoseconds, whole and of the slowest replica
  Interval change;        ///< of the time per micro-batch, as a fraction of the measured schedule's
  double peak_units = 0;  ///< micro-batches held on the fullest rank
  double memory_ratio = 1;   ///< the same relative to the measured schedule
  std::string problem = {};  ///< why it cannot be run; empty: it can
  /// Why PyTorch, whose runtime ran the steps, cannot run it; empty: it can, or another did.
  std::string refused_by_pytorch = {};
};

/// The first row is the measured schedule.
struct Tries {
  std::vector<TryRow> rows;
  std::optional<std::size_t> best = {};  ///< of the others, the shortest time per micro-batch
  std::int64_t first_step = 0;           ///< the number of steps that are left out of the costs
  double measured_step = 0;              ///< the mean of those that were fitted, nanoseconds
  double fit_error = 0;                  ///< of the first row, as a fraction of the measured step
  std::vector<std::string> notes;        ///< whole sentences on what was assumed
};

/// Writes the members above. `causes` are those of the same steps, `step` their mean time.
void write_tries_json(JsonWriter& json, const std::optional<Tries>& tries,
                      const CauseReport* causes, Nanos step);

/// try                  m        step   change      p5 to p95     memory
/// 1f1b (measured)      8    2.201 s
/// zb-h1                8    1.93 s     -12.3 %   -12.9 to -11.8 %   1x
/// without unequal stages (stage 3)     -13.5 %   -14.0 to -13.1 %
std::string write_tries_text(const Tries& tries, const CauseReport* causes, Nanos step);

}  // namespace bubblescope::traces
