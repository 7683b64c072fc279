// The activities of a step besides the pipeline's ops: as recorders show them, as users experience
// them, and as they are replayed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/job_program.h"
#include "sim/ir/units.h"

namespace bubblescope::traces {

/// The name of the activity that loads a step's samples, before its ops.
inline constexpr const char* kLoadingData = "data loader";

/// An activity of a step besides the pipeline's ops: a collective, the optimizer, or the mark of a
/// whole step on one rank.
struct ObservedActivity {
  std::string name;
  std::int32_t recorder = 0;
  std::int32_t replica = 0;
  std::int64_t step = 0;
  bool is_whole_step = false;
  Nanos start = 0;
  Nanos end = 0;
  std::optional<std::int32_t> chunk = {};  ///< the chunk of its parameters, if known
  bool has_step = true;                    ///< false: it follows from the ops around it
  bool runs_between_ops = false;           ///< its thread runs ops as well, one at a time
  bool has_microbatch = false;             ///< it states one
  bool may_lack_work = false;              ///< of a whole step: some may lie beyond this range
  bool has_other_name = false;             ///< such a range, whose name does not speak of steps
};

/// One step as users experience it: on the slowest replica, with everything that runs before and
/// after the pipeline's ops.
struct WholeStep {
  std::int64_t step = 0;
  Nanos whole = 0;
  Nanos pipeline = 0;  ///< the makespan of the slowest replica's ops
  /// Work that runs while no op of the replica does, by name: the longest time on any rank.
  std::vector<std::pair<std::string, Nanos>> outside;
  /// The longest range around all ops of it on a rank, if its name does not say what it is.
  std::optional<std::pair<std::string, Nanos>> range = {};

  /// Whether that range is so much longer that it may be the step: nothing says that it is.
  bool may_be_longer() const { return range && range->second > whole + whole / 100; }
};

/// The activities around the ops, by step.
using OuterActivities = std::map<std::int64_t, std::vector<OuterActivity>>;

}  // namespace bubblescope::traces
