// Finds the ranks of a job whose traces were not given, by what the files state. Where they state
// too little, the ends of the pipeline show it (missing_ends.h), or the delays between neighbours
// (missing_neighbours.h). Stand-ins take the place of ranks that are known (stand_ins.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/group_steps.h"

namespace bubblescope::traces {

/// Says which ranks have no trace: "2 of the 4 ranks of the job have no trace: 1, 3". Files may
/// state how many ranks there are. If they do not, a rank is missing if no trace runs some stage,
/// or if there is a gap between the ranks. nullopt if no rank is known to be missing.
std::optional<std::string> describe_missing_ranks(const ObservedTrace& trace);

/// Pipelines of which some ranks have no trace, although others are whole.
struct IncompleteReplicas {
  std::set<std::int32_t> numbers;
  std::string text;  ///< names them and says what that means; empty without any
};

/// Finds data-parallel replicas that lack ranks, if another replica has all of its own by what the
/// files state.
IncompleteReplicas find_incomplete_replicas(const ObservedTrace& trace);

/// Finds the replicas that lack ranks which another replica has.
IncompleteReplicas find_incomplete_replicas(const std::map<StepKey, StepOps>& steps);

/// Removes everything of these replicas, whose recorders state them.
ObservedTrace without_replicas(ObservedTrace trace, const std::set<std::int32_t>& replicas);

/// Says which data-parallel replicas have no trace, or that ranks outside of the pipeline may be
/// such replicas, and what that means for the report on the others. `left_out` of the others are
/// not in the report. nullopt if none is known to be missing.
std::optional<std::string> describe_missing_replicas(const ObservedTrace& trace,
                                                     std::int64_t left_out);

/// Adds what a report on the others can tell and what it cannot.
std::string describe_report_of_some(const std::string& missing);

/// Adds why there is no report on the others.
std::string describe_refusal_of_some(const std::string& missing, const std::string& why);

/// Returns a text such as "the trace of rank 2 is missing".
std::string describe_stand_ins(const std::vector<std::int32_t>& ranks);

}  // namespace bubblescope::traces
