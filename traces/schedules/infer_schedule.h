// Infers a Schedule from bare lists of cells: CSV and text files only state what each rank runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::traces {

/// The place of a cell in its file, for messages: (rank, cell) -> "zb.csv:1:4".
using PlaceOfCell = std::function<std::string(std::int32_t rank, std::size_t cell)>;

/// Splits the lists of a file into `order` (compute ops, and copies to the host) and `posted` (all
/// cells, where there are others), and infers
///   the placement   from the ranks that run a stage
///   replicas        where consecutive ranks take a stage's micro-batches in turn
///   the shape       ranks are lists; micro-batches and slices are the largest, plus one; chunks
///                   are a pipeline's stages per rank, rounded up
///   two pipelines   where the first half of the stages runs only the first half of the
///                   micro-batches, and the second half the others
///   forward_only    where there is no backward at all
/// Throws Error for what a Schedule cannot express: a stage on two ranks that do not alternate, or
/// on none, no op at all, or numbers far larger than the file. validate() decides whether the
/// schedule is legal.
Schedule infer_schedule(std::string name, std::vector<RankOrder> lists, const PlaceOfCell& place);

/// Returns the lists of a file: `posted` where present, else `order`.
inline const std::vector<RankOrder>& get_lists(const Schedule& schedule) {
  return schedule.posted.empty() ? schedule.order : schedule.posted;
}

/// Makes a schedule with only `order` and `posted`, from such lists.
Schedule make_schedule_of_lists(std::vector<RankOrder> lists);

/// Explains a schedule whose stages x micro-batches x slices exceed what its ops could fill, so
/// that a small file would need a lot of memory; nullopt where there is no problem.
std::optional<std::string> explain_size(const Schedule& schedule);

}  // namespace bubblescope::traces
