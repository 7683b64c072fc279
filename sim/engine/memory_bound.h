// The memory bound of a rank whose order is a hint.
//
// The bound is the most that the rank holds in its order. A step may be taken early if the bound
// holds then, and if it still holds throughout what remains of the order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bubblescope::inline sim {

/// The memory that one step of an order adds: at most while it runs, and in the end.
struct MemoryStep {
  std::int64_t peak = 0;
  std::int64_t net = 0;
};

class MemoryBound {
 public:
  explicit MemoryBound(std::vector<MemoryStep> order);

  /// Whether the step at this place of the order, which has not been taken, may be taken now.
  bool allows(std::size_t place) const;
  void take(std::size_t place);

  /// The places before this one are those at which a step that adds this memory may be taken.
  std::size_t end_of_allowed(const MemoryStep& step) const;

 private:
  /// A node of a binary tree over the order: the highest memory during its steps that remain, as if
  /// these ran in order; `shift` applies to all of them.
  struct Node {
    std::int64_t highest = 0;
    std::int64_t shift = 0;
  };

  std::size_t first_above(std::int64_t level) const;
  std::int64_t highest_before(std::size_t place) const;
  void shift_before(std::size_t place, std::int64_t amount);
  void remove(std::size_t place);
  void update(std::size_t node);

  std::vector<MemoryStep> order_;
  std::size_t leaves_ = 1;
  std::vector<Node> tree_;  ///< node n has the children 2 n and 2 n + 1
  std::int64_t held_ = 0;
  std::int64_t bound_ = 0;
};

}  // namespace bubblescope::inline sim
