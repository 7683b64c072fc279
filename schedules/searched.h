// Common parts of the schedules whose order is searched for, given costs and memory caps.
#pragma once

#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// The placement of a searched schedule's stages and the form of its backward.
enum class SearchForm : std::uint8_t {
  kLinear,  ///< one stage per rank, split backwards
  kV,       ///< two chunks per rank, down the ranks and up again, split backwards
  kVFused,  ///< the same with full backwards
};

/// Caps every rank at the memory of `microbatches` micro-batches of its whole share.
ScheduleRequest cap_microbatches(ScheduleRequest request, std::int64_t microbatches);

/// Caps every rank at `chunks` chunks held until their W ends, whatever the memory model says.
ScheduleRequest cap_chunks(ScheduleRequest request, std::int64_t chunks);

/// Refuses caps that are too small for one micro-batch, for every such rank.
std::vector<std::string> refuse_search(const ScheduleRequest& request, SearchForm form);

/// The order with the shortest span (last end minus first start, of the worst rank) that the
/// heuristics of schedules/search find under the request's caps or smaller ones. More memory never
/// makes it longer.
Schedule build_searched(const ScheduleRequest& request, SearchForm form);

/// The same under exactly the request's caps, for schedules whose caps are part of their name.
Schedule build_searched_under_its_caps(const ScheduleRequest& request, SearchForm form);

/// Claims the work on one rank, where there is nothing to wait for; empty for more ranks.
Claims claim_work_of_one_rank(const ScheduleRequest& request, SearchForm form);

}  // namespace bubblescope::schedules
