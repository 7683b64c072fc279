// Corrects clock offsets between ranks, which show as ops that begin before their inputs have
// ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::traces {

/// Gaps smaller than this are ignored: clocks of one host and ends of slices are no more exact.
inline constexpr Nanos kClocksExact = 10'000;

/// The shortest time, over all steps, between the end of an op on one rank and the start of a
/// dependent op on another. A negative gap means that the two clocks differ, or that one of the
/// slices also contains waiting.
class ClockGaps {
 public:
  explicit ClockGaps(std::int32_t ranks);

  /// Adds the compute ops of one more step; the times of messages are not needed.
  void add(const Program& program, const Timeline& timeline);

  std::optional<Nanos> smallest(std::int32_t from, std::int32_t to) const {
    return smallest_[index(from, to)];
  }
  std::int32_t ranks() const { return ranks_; }

 private:
  std::size_t index(std::int32_t from, std::int32_t to) const;

  std::int32_t ranks_;
  std::vector<std::optional<Nanos>> smallest_;  ///< [from * ranks + to]
};

/// The correction of each rank's times, with notes for the user.
struct ClockCorrection {
  std::vector<Nanos> shift;        ///< [rank]; zeros where the clocks agree
  std::vector<std::string> notes;  ///< whole sentences
};

/// Two ranks that depend on each other are shifted so that the smallest gap is the same in both
/// directions, as for a message that takes equally long both ways. Ranks whose ops are in order
/// keep their difference. Gaps that no constant shift explains remain and are reported in the
/// notes. Rank 0 is the reference clock.
ClockCorrection align_clocks(const ClockGaps& gaps);

}  // namespace bubblescope::traces
