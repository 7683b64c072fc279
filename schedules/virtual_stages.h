// Interleaved schedules with virtual stages: a rank holds every p-th stage, and micro-batches pass
// its chunks in groups. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU
// Clusters", 2021, section 2.2; in this general form Megatron-LM's schedule table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedules/rank_order.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// The groups of micro-batches; the last one may be smaller.
struct Groups {
  std::int32_t size = 1;  ///< as requested, else the profile's default
  std::int32_t last = 1;  ///< the size of the last group
};

Groups find_groups(const ScheduleRequest& request);

/// Whether a group is at least as long as the loop of ranks (or the only one), so that its first
/// micro-batch is back when its last has left. Always true for what frameworks accept; smaller
/// groups wait in between.
bool fill_loop(const Groups& groups, const Shape& shape);

/// The profile's objections to the groups, each in one sentence.
std::vector<std::string> refuse_groups(const ScheduleRequest& request);

/// The number of forwards that a rank runs before its first backward, with g and h the group sizes:
///   w = (v-1) g + min(steps (p-1-r), g + h)
/// They reach the last chunk and add `steps` for each rank that follows. No rank may be more than g
/// + h ahead of the last one, or they deadlock around the loop; groups that fill the loop never
/// are. With a MoeOverlap every rank is one more ahead.
std::int64_t count_virtual_warmup(const ScheduleRequest& request, std::int32_t rank,
                                  std::int32_t steps);

/// A rank's visits: group by group, chunk by chunk in a group, micro-batch by micro-batch in a
/// chunk. Backwards visit the chunks in reverse. For p = 2, v = 2, m = 5 and groups of 3, rank 0
/// runs the forwards
///   0F0 0F1 0F2  2F0 2F1 2F2 | 0F3 0F4  2F3 2F4
Visits make_virtual_visits(const Shape& shape, std::int32_t group_size, std::int32_t rank);

/// Interleaved 1F1B with split backwards, warmed up by `steps` (count_virtual_warmup()). On rank r
/// each W follows the I that is `rank_lag` r visits later than its own.
Schedule interleave_split(const ScheduleRequest& request, std::int32_t steps,
                          std::int32_t rank_lag);

/// The most chunks that each rank holds with this warm-up and lag. Schedules with full backwards
/// have no lag.
std::vector<std::int64_t> count_peak_chunks(const ScheduleRequest& request, std::int32_t steps,
                                            std::int32_t rank_lag = 0);

}  // namespace bubblescope::schedules
