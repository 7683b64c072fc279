// Numbers the ranks of a pipeline. Where the traces of some are missing, the others keep their
// numbers: ranks 0, 1 and 3 of 4 stay 0, 1 and 3.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

struct RankNumbers {
  std::vector<std::int32_t> of_recorder;
  std::int32_t ranks = 0;  ///< with those that have no recorder
};

/// Numbers every recorder: by the rank that it states, else by the first stage that it runs, else
/// in the order of the files. Ranks without a recorder are counted only if they must be missing,
/// because their stages are, because ops do not state their stages, or because files are counted.
RankNumbers number_ranks(const ObservedTrace& trace);

/// Whether the ranks that all recorders state can be used as they are. Numbers of devices can, and
/// those of processes if they begin with 0, which is not a process of a system.
bool state_ranks(const std::vector<Recorder>& recorders);

/// Whether every compute op states its stage.
bool state_stages(const ObservedTrace& trace);

/// Returns for each recorder the replica of its ops; 0 without any.
std::vector<std::int32_t> find_replicas(const ObservedTrace& trace);

/// [rank]: the stages that it runs.
using StagesByRank = std::map<std::int32_t, std::set<std::int32_t>>;

/// The stages of all ranks, given those of some: placed in a loop or in a V, or else with all that
/// are left on the only rank that is missing. Empty where none of this fits.
std::optional<StagesByRank> complete_placement(const StagesByRank& known, std::int32_t ranks);

/// Whether the ranks that all recorders state are numbers of processes that cannot be used as they
/// are. They order ranks only where stages do not.
bool are_of_processes(const std::vector<Recorder>& recorders);

}  // namespace bubblescope::traces
