// Clocks of ranks that are apart, found from ops that begin before what they need has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// Clocks of one host, and ends of slices, are no better.
inline constexpr Nanos kClocksExact = 10'000;

/// The least time, over steps, between an op's end on one rank and the start of one that needs it
/// on another. Below zero, the two clocks are apart, or one of the slices also holds waiting.
class ClockGaps {
 public:
  explicit ClockGaps(std::int32_t ranks);

  /// Takes the compute ops of one more step; messages need no times.
  void add(const Program& program, const Timeline& timeline);

  std::optional<Nanos> least(std::int32_t from, std::int32_t to) const {
    return least_[index(from, to)];
  }
  std::int32_t ranks() const { return ranks_; }

 private:
  std::size_t index(std::int32_t from, std::int32_t to) const;

  std::int32_t ranks_;
  std::vector<std::optional<Nanos>> least_;  ///< [from * ranks + to]
};

/// What to add to each rank's times, and what is to be said about it.
struct ClockCorrection {
  std::vector<Nanos> shift;        ///< [rank]; zeros where clocks agree
  std::vector<std::string> notes;  ///< in sentences
};

/// Two ranks that need each other's ops are set so that the least gap is the same both ways, as for
/// a message that takes as long there as back; ranks between which nothing is wrong keep their
/// difference. Gaps that no constant shift explains stay, and are told. Rank 0's clock counts.
ClockCorrection align_clocks(const ClockGaps& gaps);

}  // namespace bubblescope
