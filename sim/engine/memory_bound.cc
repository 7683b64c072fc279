// A tree of maxima, in which taking a step early raises all that come before it.
#include "sim/engine/memory_bound.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bubblescope::inline sim {

namespace {

/// Far below any memory, so that shifts cannot bring it back.
constexpr std::int64_t kTaken = std::numeric_limits<std::int64_t>::min() / 2;

}  // namespace

MemoryBound::MemoryBound(std::vector<MemoryStep> order) : order_(std::move(order)) {
  while (leaves_ < order_.size()) leaves_ *= 2;
  tree_.assign(2 * leaves_, {kTaken, 0});
  std::int64_t level = 0;
  for (std::size_t place = 0; place < order_.size(); ++place) {
    tree_[leaves_ + place].highest = level + order_[place].peak;
    level += order_[place].net;
  }
  for (std::size_t node = leaves_; node-- > 1;) update(node);
  bound_ = std::max<std::int64_t>(tree_[1].highest, 0);
}

bool MemoryBound::allows(std::size_t place) const {
  const MemoryStep& step = order_[place];
  if (held_ + step.peak > bound_) return false;
  return step.net <= 0 || highest_before(place) + step.net <= bound_;
}

/// If a step runs early, the memory at all places before it rises. The first place where it would
/// then exceed the bound is the limit.
std::size_t MemoryBound::end_of_allowed(const MemoryStep& step) const {
  if (held_ + step.peak > bound_) return 0;
  if (step.net <= 0) return order_.size();
  return std::min(order_.size(), first_above(bound_ - step.net) + 1);
}

/// Walks from the root to the first leaf above a level.
std::size_t MemoryBound::first_above(std::int64_t level) const {
  if (tree_[1].highest <= level) return order_.size();
  std::size_t node = 1;
  while (node < leaves_) {
    level -= tree_[node].shift;
    node *= 2;
    if (tree_[node].highest <= level) ++node;
  }
  return node - leaves_;
}

void MemoryBound::take(std::size_t place) {
  shift_before(place, order_[place].net);
  remove(place);
  held_ += order_[place].net;
}

void MemoryBound::update(std::size_t node) {
  tree_[node].highest =
      tree_[node].shift + std::max(tree_[2 * node].highest, tree_[2 * node + 1].highest);
}

/// Walks from the leaf to the root: left siblings hold what comes before the place.
std::int64_t MemoryBound::highest_before(std::size_t place) const {
  std::int64_t highest = kTaken;
  for (std::size_t node = leaves_ + place; node > 1; node /= 2) {
    if (node % 2 == 1) highest = std::max(highest, tree_[node - 1].highest);
    highest += tree_[node / 2].shift;
  }
  return highest;
}

void MemoryBound::shift_before(std::size_t place, std::int64_t amount) {
  for (std::size_t node = leaves_ + place; node > 1; node /= 2) {
    if (node % 2 == 1) {
      tree_[node - 1].highest += amount;
      tree_[node - 1].shift += amount;
    }
    update(node / 2);
  }
}

void MemoryBound::remove(std::size_t place) {
  tree_[leaves_ + place].highest = kTaken;
  for (std::size_t node = (leaves_ + place) / 2; node > 0; node /= 2) update(node);
}

}  // namespace bubblescope::inline sim
