// From bare lists of cells to a Schedule: CSV and text files say only what each rank does, and the
// rest follows from that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// Where the file has a cell, for messages: (rank, cell) -> "zb.csv:1:4".
using PlaceOfCell = std::function<std::string(std::int32_t rank, std::size_t cell)>;

/// Splits the lists as a file has them into `order` (compute ops and copies, which go to the host)
/// and `posted` (all cells, where there is anything else), and infers
///   the placement   from who runs a stage
///   the shape       ranks are lists; micro-batches and slices are the largest, plus one; chunks
///                   are a pipeline's stages per rank, rounded up
///   two pipelines   where the first half of the stages runs only the first half of the
///                   micro-batches, and the second half the others
///   forward_only    where there is no backward at all
/// Throws Error for what no Schedule can express: a stage on two ranks or on none, no op at all, or
/// numbers far larger than the file. Whether the schedule is legal is validate()'s question.
Schedule infer_schedule(std::string name, std::vector<RankOrder> lists, const PlaceOfCell& place);

/// The lists as a file has them: `posted` where there is one, else `order`.
inline const std::vector<RankOrder>& lists_of(const Schedule& schedule) {
  return schedule.posted.empty() ? schedule.order : schedule.posted;
}

/// A schedule with `order` and `posted` from such lists, and nothing else yet.
Schedule schedule_of_lists(std::vector<RankOrder> lists);

/// What is wrong where stages x micro-batches x slices exceed what the ops could ever fill, which
/// would make a small file ask for a lot of memory; empty where nothing is.
std::optional<std::string> explain_size(const Schedule& schedule);

}  // namespace bubblescope
