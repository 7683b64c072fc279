// Schedules whose order is searched for, given costs and memory caps.
#pragma once

#include <cstdint>
#include <functional>

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

/// Completes the definition of a schedule that has a name, a summary and a source: its order has
/// the shortest span (last end minus first start, of the worst rank) that the heuristics of
/// schedules/search find under the request's caps or smaller ones. More memory never makes it
/// longer. Caps that are too small for one micro-batch are refused, for every such rank.
ScheduleDef define_searched(ScheduleDef def, SearchForm form);

/// Gives a request the caps that are part of a schedule's name.
using SetCaps = std::function<ScheduleRequest(const ScheduleRequest&)>;

/// Completes the definition of a schedule that has caps of its own, and searches under exactly
/// these.
ScheduleDef define_searched(ScheduleDef def, SearchForm form, const SetCaps& set_caps);

}  // namespace bubblescope::schedules
