// Breadth-first search over the progress of all ranks.
#include "tests/support/span_oracle.h"

#include <algorithm>
#include <vector>

namespace bubblescope::tests {

namespace {

/// How many F, I and W each rank has done, four bits each: rank r's are nibbles 3r, 3r+1, 3r+2.
using Progress = std::uint64_t;

constexpr Progress one(std::int32_t rank, std::int32_t step) {
  return Progress{1} << (4 * (3 * rank + step));
}

std::int32_t count(Progress progress, std::int32_t rank, std::int32_t step) {
  return static_cast<std::int32_t>(progress >> (4 * (3 * rank + step)) & 15);
}

class Oracle {
 public:
  Oracle(std::int32_t ranks, std::int32_t microbatches, std::int32_t cap)
      : ranks_(ranks), microbatches_(microbatches), cap_(cap) {}

  bool can_end_within(std::int32_t span) const {
    std::vector<Progress> now{0};
    for (std::int32_t time = 0; time < span + ranks_ - 1; ++time) {
      std::vector<Progress> next;
      for (const Progress before : now) extend(before, before, 0, span - time, next);
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      now = std::move(next);
    }
    return !now.empty();
  }

 private:
  bool ready(Progress before, std::int32_t rank, std::int32_t step) const {
    const std::int32_t nth = count(before, rank, step);
    if (nth == microbatches_) return false;
    if (step == 2) return count(before, rank, 1) > nth;
    if (step == 1)
      return count(before, rank, 0) > nth &&
             (rank == ranks_ - 1 || count(before, rank + 1, 1) > nth);
    if (nth - count(before, rank, 2) >= cap_) return false;
    return rank == 0 || count(before, rank - 1, 0) > nth;
  }

  /// Extends by every way in which ranks from `rank` on can use this unit of time; rank r has
  /// `time_left` + r units with it. Waiting while a W can run gains nothing.
  void extend(Progress before, Progress after, std::int32_t rank, std::int32_t time_left,
              std::vector<Progress>& next) const {
    if (rank == ranks_) {
      next.push_back(after);
      return;
    }
    std::int32_t left = 3 * microbatches_;
    for (std::int32_t step = 0; step < 3; ++step) left -= count(before, rank, step);
    const std::int32_t own_time_left = std::max(0, time_left + rank);
    if (left > own_time_left) return;
    for (std::int32_t step = 0; step < 3; ++step)
      if (ready(before, rank, step))
        extend(before, after + one(rank, step), rank + 1, time_left, next);
    if (left <= std::max(0, own_time_left - 1) && !ready(before, rank, 2))
      extend(before, after, rank + 1, time_left, next);
  }

  std::int32_t ranks_;
  std::int32_t microbatches_;
  std::int32_t cap_;
};

}  // namespace

std::int32_t shortest_unit_span(std::int32_t ranks, std::int32_t microbatches, std::int32_t cap) {
  const Oracle oracle(ranks, microbatches, cap);
  std::int32_t span = 3 * microbatches;
  while (!oracle.can_end_within(span)) ++span;
  return span;
}

}  // namespace bubblescope::tests
