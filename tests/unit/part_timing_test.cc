// The timing of parts on lanes, against a plain interpreter that steps through every nanosecond.
#include "sim/model/part_timing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace bubblescope::tests {
namespace {

/// Work is counted in fractions of a nanosecond that the slowdowns 1, 2 and 4 by all other lanes
/// together divide.
constexpr std::int64_t kUnits = std::int64_t{1} << (2 * (kPartLanes.size() - 1));

/// The state of one part while the interpreter runs.
struct Step {
  bool has_started = false;
  bool has_ended = false;
  std::int64_t left = 0;
  Nanos start = 0;
  Nanos end = 0;
};

class PlainInterpreter {
 public:
  PlainInterpreter(const std::vector<LanePart>& parts, const LaneContention& contention)
      : parts_(parts), contention_(contention), steps_(parts.size()) {}

  /// Returns the steps of all parts; those that never start have not started.
  std::vector<Step> run() {
    for (Nanos now = 0;; ++now) {
      while (start_one(now)) {
      }
      if (!progress(now)) return steps_;
    }
  }

 private:
  bool may_start(std::size_t part) const {
    if (steps_[part].has_started) return false;
    for (const std::uint32_t awaited : parts_[part].after)
      if (!steps_[awaited].has_ended) return false;
    for (std::size_t other = 0; other < parts_.size(); ++other) {
      const bool is_before = parts_[other].window < parts_[part].window ||
                             (parts_[other].lane == parts_[part].lane && other < part);
      if (is_before && !steps_[other].has_ended) return false;
    }
    return true;
  }

  bool start_one(Nanos now) {
    for (std::size_t part = 0; part < parts_.size(); ++part)
      if (may_start(part)) {
        steps_[part] = {true, parts_[part].alone == 0, parts_[part].alone * kUnits, now, now};
        return true;
      }
    return false;
  }

  bool is_running(std::size_t part) const {
    return steps_[part].has_started && !steps_[part].has_ended;
  }

  /// One nanosecond of all running parts; false if there are none.
  bool progress(Nanos now) {
    std::vector<std::int64_t> done(parts_.size(), 0);
    bool any = false;
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (!is_running(part)) continue;
      any = true;
      double slowdown = 1;
      for (std::size_t other = 0; other < parts_.size(); ++other)
        if (is_running(other))
          slowdown *= contention_.slowdown[parts_[part].lane][parts_[other].lane];
      done[part] = static_cast<std::int64_t>(static_cast<double>(kUnits) / slowdown);
    }
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      if (done[part] == 0) continue;
      steps_[part].left -= done[part];
      if (steps_[part].left > 0) continue;
      steps_[part].has_ended = true;
      steps_[part].end = now + 1;
    }
    return any;
  }

  const std::vector<LanePart>& parts_;
  const LaneContention& contention_;
  std::vector<Step> steps_;
};

class RandomParts {
 public:
  explicit RandomParts(std::uint32_t seed) : random_(seed) {
    const std::size_t count = 1 + pick(14);
    const bool has_windows = pick(2) == 0;
    const bool is_ordered = pick(4) != 0;  // else parts may wait for each other
    for (std::uint32_t at = 0; at < count; ++at) {
      LanePart part{static_cast<PartLane>(pick(kPartLanes.size())),
                    static_cast<Nanos>(pick(5) == 0 ? 0 : pick(20)),
                    {},
                    parts.empty() ? 0 : parts.back().window};
      if (has_windows && pick(4) == 0) ++part.window;
      for (std::uint32_t other = 0; other < count; ++other)
        if (other != at && (other < at || !is_ordered) && pick(6) == 0) part.after.push_back(other);
      parts.push_back(part);
    }
    const std::array<double, 3> factors{1, 2, 4};
    for (std::size_t lane = 0; lane < kPartLanes.size(); ++lane)
      for (std::size_t other = 0; other < kPartLanes.size(); ++other)
        if (lane != other && seed % 3 != 0)
          contention.slowdown[lane][other] = factors[pick(factors.size())];
  }

  std::vector<LanePart> parts;
  LaneContention contention;

 private:
  std::size_t pick(std::size_t choices) { return random_() % choices; }

  std::mt19937 random_;
};

TEST(PartTiming, AgreesWithAPlainInterpreterOnRandomGraphs) {
  int blocked = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    const RandomParts random(seed);
    const std::vector<Step> expected = PlainInterpreter(random.parts, random.contention).run();
    const PartTiming timing = time_parts(random.parts, random.contention);
    const bool is_stuck = std::any_of(expected.begin(), expected.end(),
                                      [](const Step& step) { return !step.has_started; });
    EXPECT_EQ(timing.blocked.empty(), !is_stuck) << "seed " << seed;
    if (is_stuck) ++blocked;
    if (is_stuck) continue;
    for (std::size_t part = 0; part < random.parts.size(); ++part) {
      EXPECT_EQ(timing.intervals[part].start, expected[part].start) << seed << " " << part;
      EXPECT_EQ(timing.intervals[part].end, expected[part].end) << seed << " " << part;
    }
  }
  EXPECT_GT(blocked, 100);
  EXPECT_LT(blocked, 2000);
}

// The compute lane works or waits at any time, so both times fill the whole without gaps.
TEST(PartTiming, SharesOfPartsFillTheWhole) {
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    const RandomParts random(seed);
    const PartTiming timing = time_parts(random.parts, random.contention);
    if (!timing.blocked.empty()) continue;
    std::vector<Nanos> time_of(random.parts.size(), 0);
    Nanos reached = 0;
    for (const PartShare& share : divide_time(random.parts, timing.intervals)) {
      const PartInterval& interval = timing.intervals[share.part];
      EXPECT_EQ(share.start, reached) << seed;
      EXPECT_LT(share.start, share.end) << seed;
      EXPECT_GE(share.start, interval.start) << seed;
      EXPECT_LE(share.end, interval.end) << seed;
      time_of[share.part] += share.end - share.start;
      reached = share.end;
    }
    Nanos whole = 0;
    for (std::size_t part = 0; part < random.parts.size(); ++part) {
      const PartInterval& interval = timing.intervals[part];
      whole = std::max(whole, interval.end);
      if (random.parts[part].lane != kComputeLane) continue;
      EXPECT_EQ(time_of[part], interval.end - interval.start) << seed;
    }
    EXPECT_EQ(reached, whole) << seed;
  }
}

// 10 ns of compute beside 4 ns of a collective that slows it twofold: 2 ns of the work are done
// when the collective ends, and 8 are left.
TEST(PartTiming, ContentionSlowsOnlyWhileTheOtherLaneIsBusy) {
  LaneContention contention;
  contention.slowdown[0][2] = 2;
  const std::vector<LanePart> parts{{0, 10}, {2, 4}};
  const PartTiming timing = time_parts(parts, contention);
  EXPECT_EQ(timing.intervals[0].end, 12);
  EXPECT_EQ(timing.intervals[1].end, 4);
}

}  // namespace
}  // namespace bubblescope::tests
