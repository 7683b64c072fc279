// Corrects clock offsets between ranks, which show as ops that begin before their inputs have
// ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Whether all ranks were recorded on machines of one name, which usually is one with one clock.
bool are_on_one_host(const ObservedTrace& trace);

/// Gaps smaller than this are ignored: clocks of one host and ends of slices are no more exact.
inline constexpr Nanos kClockTolerance = 10'000;

/// The shortest time in a step between the end of an op on one rank and the start of a dependent op
/// on another, which starts `time` after the first step. A negative gap means that the two clocks
/// differ, or that one of the slices also contains waiting.
struct ClockGap {
  Nanos time = 0;
  Nanos gap = 0;
};

/// The gaps between every two ranks, in every step.
class ClockGaps {
 public:
  explicit ClockGaps(std::int32_t ranks) : ranks_(ranks) {}

  /// Adds the compute ops of one more step; the times of messages are not needed.
  void add(const Program& program, const Timeline& timeline);

  /// Two ranks of which the second depends on ops of the first.
  using Pair = std::pair<std::int32_t, std::int32_t>;

  /// The gaps of every such pair: one for each step in which it occurs, the smallest. Few of all
  /// pairs are neighbours in a pipeline.
  const std::map<Pair, std::vector<ClockGap>>& pairs() const { return gaps_; }
  std::int32_t ranks() const { return ranks_; }
  std::size_t steps() const { return steps_; }
  Nanos origin() const { return origin_; }

 private:
  std::int32_t ranks_;
  std::size_t steps_ = 0;
  Nanos origin_ = 0;  ///< when the first step begins
  std::map<Pair, std::vector<ClockGap>> gaps_;
};

/// A rank's times grow by `shift` at the origin, and by `drift` more per nanosecond.
struct ClockShift {
  Nanos shift = 0;
  double drift = 0;

  Nanos after(Nanos time) const {
    return drift == 0 ? shift : shift + static_cast<Nanos>(drift * static_cast<double>(time));
  }
};

/// The correction of each rank's times, with notes for the user.
struct ClockCorrection {
  Nanos origin = 0;
  std::vector<ClockShift> shifts;  ///< [rank]; zeros where the clocks agree
  std::vector<std::string> notes;  ///< whole sentences

  Nanos shift_at(std::int32_t rank, Nanos time) const {
    return shifts[static_cast<std::size_t>(rank)].after(time - origin);
  }
};

/// Two ranks that depend on each other are shifted so that the smallest gap is the same in both
/// directions, as for a message that takes equally long both ways. Ranks whose ops are in order
/// keep their difference. Where no constant shift explains the gaps of three steps or more, one
/// that grows evenly may: such clocks drift. Gaps that remain are reported in the notes. Rank 0 is
/// the reference clock.
ClockCorrection align_clocks(const ClockGaps& gaps);

/// Ranks that state the same host share a clock: nothing is shifted, unless shifts explain every op
/// that begins before its input. Then the hosts only have the same name, as containers may have.
ClockCorrection align_clocks_of_host(const ClockGaps& gaps);

}  // namespace bubblescope::traces
