// Predicts the measured job with other schedules and numbers of micro-batches: analyze --try.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/cost_table.h"
#include "traces/reports/tries.h"

namespace bubblescope::tools {

struct TryOptions {
  std::vector<std::string> schedules;      ///< names; "search" searches for one
  std::vector<std::int32_t> microbatches;  ///< empty: as measured
  std::vector<std::int32_t> chunks = {};   ///< per rank, where a schedule leaves them open
  /// Those that only "all" stands for: if they cannot be tried, notes say so.
  std::set<std::string> of_all = {};
  /// Whether PyTorch's pipeline runtime ran the steps, if its profiler recorded them: the best is
  /// one that it can run.
  bool by_pytorch = true;
};

/// A row for every schedule and number of micro-batches, and the schedules themselves.
struct TriedSchedules {
  traces::Tries tries;
  std::optional<ValidSchedule> best;  ///< the one with the shortest time per micro-batch
};

/// The schedules that train and update once per step.
std::vector<std::string> list_all_tries();

/// Predicts all of them with the same costs and the same noise. Micro-batches keep their size, and
/// every schedule does what the measured one does besides its forwards and backwards: it gathers
/// parameters, recomputes, reduces and updates, as `lower` says. With `of_all` the best row follows
/// the measured one, and notes name the schedules, or their shapes, that cannot be tried. With
/// `by_pytorch` a schedule that PyTorch refuses is the best only if it refuses all. Throws Error
/// for an unknown schedule, and for chunks that none takes.
TriedSchedules try_schedules(const ValidSchedule& measured, const LowerOptions& lower,
                             const CostTable& costs, const TryOptions& options);

/// Returns what was asked for and cannot be tried: "chimera (-m 9)", "interleaved (-m 8 --vpp 3)".
/// Where all schedules are tried, one is enough, as notes have the others; those that are named
/// beside "all" are asked for.
std::vector<std::string> list_refused(const traces::Tries& tries, const TryOptions& options);

}  // namespace bubblescope::tools
