// Regular placements, and the enumeration of all.
#include "schedules/search/placements.h"

#include <algorithm>
#include <utility>

#include "sim/ir/counted.h"

namespace bubblescope::schedules {

namespace {

constexpr std::size_t kMaxAssignments = 120;

/// All ways to assign `chunks` stages to each rank; ways that only rename ranks count once. Stops
/// after kMaxAssignments.
class Assignments {
 public:
  Assignments(const Shape& shape, bool ranks_are_equal)
      : shape_(shape),
        is_uniform_(ranks_are_equal),
        assigned_(static_cast<std::size_t>(shape.ranks), 0) {
    assign(0);
  }

  std::vector<std::vector<std::int32_t>> take() { return std::move(found_); }

 private:
  void assign(std::int32_t ranks_used) {
    if (found_.size() > kMaxAssignments) return;
    if (static_cast<std::int32_t>(current_.size()) == shape_.ranks * shape_.chunks) {
      found_.push_back(current_);
      return;
    }
    const std::int32_t rank_limit =
        is_uniform_ ? std::min(ranks_used + 1, shape_.ranks) : shape_.ranks;
    for (std::int32_t rank = 0; rank < rank_limit; ++rank) {
      if (assigned_[rank] == shape_.chunks) continue;
      ++assigned_[rank];
      current_.push_back(rank);
      assign(std::max(ranks_used, rank + 1));
      current_.pop_back();
      --assigned_[rank];
    }
  }

  const Shape& shape_;
  bool is_uniform_;
  std::vector<std::int32_t> assigned_;  ///< [rank]: number of stages
  std::vector<std::int32_t> current_;
  std::vector<std::vector<std::int32_t>> found_;
};

std::vector<std::int32_t> block_placement(const Shape& shape) {
  std::vector<std::int32_t> rank_of_stage;
  for (std::int32_t stage = 0; stage < shape.ranks * shape.chunks; ++stage)
    rank_of_stage.push_back(stage / shape.chunks);
  return rank_of_stage;
}

Placements free_placements(const Shape& shape, bool ranks_are_equal) {
  std::vector<std::vector<std::int32_t>> all = Assignments(shape, ranks_are_equal).take();
  if (all.size() <= kMaxAssignments) return {std::move(all), true};
  return {{zigzag_placement(shape.ranks, shape.chunks), loop_placement(shape.ranks, shape.chunks),
           block_placement(shape)},
          false};
}

}  // namespace

std::int32_t default_chunks(PlacementChoice choice) {
  switch (choice) {
    case PlacementChoice::kLinear: return 1;
    case PlacementChoice::kInterleaved:
    case PlacementChoice::kV:
    case PlacementChoice::kFree: return 2;
    case PlacementChoice::kWave: return 4;
  }
  return 1;
}

std::string refuse_chunks(PlacementChoice choice, std::int32_t chunks) {
  constexpr std::int32_t kMaxSearchedChunks = 16;
  if (chunks > kMaxSearchedChunks)
    return "`vpp` is above the " + counted(kMaxSearchedChunks, "chunk") +
           " that a search can distinguish; use fewer";
  if (choice == PlacementChoice::kLinear && chunks != 1)
    return "a linear placement has one stage per rank; leave `vpp` out or choose `placement` "
           "interleaved, v or wave";
  if (choice == PlacementChoice::kV && chunks != 2)
    return "a V has two chunks per rank; leave `vpp` out or choose `placement` wave";
  return {};
}

Placements placements(PlacementChoice choice, const Shape& shape, bool ranks_are_equal) {
  switch (choice) {
    case PlacementChoice::kLinear:
    case PlacementChoice::kV:
    case PlacementChoice::kWave: return {{zigzag_placement(shape.ranks, shape.chunks)}, true};
    case PlacementChoice::kInterleaved: return {{loop_placement(shape.ranks, shape.chunks)}, true};
    case PlacementChoice::kFree: return free_placements(shape, ranks_are_equal);
  }
  return {};
}

}  // namespace bubblescope::schedules
