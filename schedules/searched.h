// What the schedules have in common whose order is searched for, given costs and memory caps.
#pragma once

#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope {

/// Where a searched schedule's stages lie and what its backward is.
enum class SearchForm : std::uint8_t {
  kLinear,  ///< one stage per rank, I and W apart
  kV,       ///< two chunks per rank, down the ranks and up again, I and W apart
  kVFused,  ///< the same with full backwards
};

/// The request with at most `microbatches` micro-batches' memory, of a rank's whole share, per
/// rank.
ScheduleRequest capped_at(ScheduleRequest request, std::int64_t microbatches);

/// The request with at most `chunks` chunks per rank held until their W ends, whatever --mem says.
ScheduleRequest capped_at_chunks(ScheduleRequest request, std::int64_t chunks);

/// Every rank whose cap is below what one micro-batch needs: without that there is no schedule.
std::vector<std::string> refuse_search(const ScheduleRequest& request, SearchForm form);

/// The order with the shortest span (own last end minus own first start, of the worst rank) that
/// the heuristics of schedules/search find under the request's caps or smaller ones: more memory
/// never makes it longer.
Schedule build_searched(const ScheduleRequest& request, SearchForm form);

/// The same under the request's caps alone, where they belong to the schedule's name.
Schedule build_searched_under_its_caps(const ScheduleRequest& request, SearchForm form);

/// On one rank there is nothing to wait for; more is not promised.
Claims claim_work_of_one_rank(const ScheduleRequest& request, SearchForm form);

}  // namespace bubblescope
