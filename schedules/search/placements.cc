// Regular placements, and the enumeration of all.
#include "schedules/search/placements.h"

#include <algorithm>
#include <utility>

namespace bubblescope {

namespace {

constexpr std::size_t kMostDeals = 120;

/// All ways to assign `chunks` stages to each rank; ways that only rename ranks count once. Stops
/// after kMostDeals.
class Deals {
 public:
  Deals(const Shape& shape, bool alike)
      : shape_(shape), alike_(alike), dealt_(static_cast<std::size_t>(shape.ranks), 0) {
    deal(0);
  }

  std::vector<std::vector<std::int32_t>> take() { return std::move(found_); }

 private:
  void deal(std::int32_t ranks_used) {
    if (found_.size() > kMostDeals) return;
    if (static_cast<std::int32_t>(current_.size()) == shape_.ranks * shape_.chunks) {
      found_.push_back(current_);
      return;
    }
    const std::int32_t most = alike_ ? std::min(ranks_used + 1, shape_.ranks) : shape_.ranks;
    for (std::int32_t rank = 0; rank < most; ++rank) {
      if (dealt_[rank] == shape_.chunks) continue;
      ++dealt_[rank];
      current_.push_back(rank);
      deal(std::max(ranks_used, rank + 1));
      current_.pop_back();
      --dealt_[rank];
    }
  }

  const Shape& shape_;
  bool alike_;
  std::vector<std::int32_t> dealt_;  ///< [rank]: number of stages
  std::vector<std::int32_t> current_;
  std::vector<std::vector<std::int32_t>> found_;
};

std::vector<std::int32_t> neighbours_together(const Shape& shape) {
  std::vector<std::int32_t> rank_of_stage;
  for (std::int32_t stage = 0; stage < shape.ranks * shape.chunks; ++stage)
    rank_of_stage.push_back(stage / shape.chunks);
  return rank_of_stage;
}

Placements free_placements(const Shape& shape, bool alike) {
  std::vector<std::vector<std::int32_t>> all = Deals(shape, alike).take();
  if (all.size() <= kMostDeals) return {std::move(all), true};
  return {{zigzag_placement(shape.ranks, shape.chunks), loop_placement(shape.ranks, shape.chunks),
           neighbours_together(shape)},
          false};
}

}  // namespace

std::int32_t usual_chunks(PlacementChoice choice) {
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
  constexpr std::int32_t kMostChunks = 16;
  if (chunks > kMostChunks)
    return "--vpp is above the " + std::to_string(kMostChunks) +
           " chunks that a search can keep "
           "apart; ask for fewer";
  if (choice == PlacementChoice::kLinear && chunks != 1)
    return "a linear placement has one stage per rank; leave --vpp out or choose --placement "
           "interleaved, v or wave";
  if (choice == PlacementChoice::kV && chunks != 2)
    return "a V has two chunks per rank; leave --vpp out or choose --placement wave";
  return {};
}

Placements placements(PlacementChoice choice, const Shape& shape, bool alike) {
  switch (choice) {
    case PlacementChoice::kLinear:
    case PlacementChoice::kV:
    case PlacementChoice::kWave: return {{zigzag_placement(shape.ranks, shape.chunks)}, true};
    case PlacementChoice::kInterleaved: return {{loop_placement(shape.ranks, shape.chunks)}, true};
    case PlacementChoice::kFree: return free_placements(shape, alike);
  }
  return {};
}

}  // namespace bubblescope
