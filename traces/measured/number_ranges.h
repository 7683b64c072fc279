// Numbers of ranks, stages, micro-batches or steps in the words of a report: "0 to 2, 5".
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bubblescope::traces {

/// Numbers in ascending order, joined to ranges.
class NumberRanges {
 public:
  /// Adds first .. last, which follow those that are there; nothing where `last` is the smaller.
  void add(std::int64_t first, std::int64_t last);

  bool empty() const { return ranges_.empty(); }
  std::int64_t count() const;
  bool are_several() const { return count() > 1; }

  /// "0 to 2, 5"; only the first ranges where there are many.
  std::string text() const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

/// "step 2", "steps 0 to 2, 5"; the numbers are in ascending order.
std::string list_steps(const std::vector<std::int64_t>& numbers);

}  // namespace bubblescope::traces
