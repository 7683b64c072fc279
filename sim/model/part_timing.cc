// Times parts from end to end.
#include "sim/model/part_timing.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace bubblescope::inline sim {

namespace {

__extension__ typedef __int128 PartWork;  ///< kFullSpeed of it is done per nanosecond alone
constexpr std::int64_t kFullSpeed = std::int64_t{1} << 30;

constexpr std::size_t kLanes = kPartLanes.size();

class LaneRun {
 public:
  LaneRun(std::span<const LanePart> parts, const LaneContention& contention)
      : parts_(parts), contention_(contention), waiting_(parts.size()), waiters_(parts.size()) {
    timing_.intervals.resize(parts.size());
    running_.fill(kNoPart);
    for (std::uint32_t at = 0; at < parts.size(); ++at) {
      waiting_[at] = parts[at].after.size();
      for (const std::uint32_t awaited : parts[at].after) waiters_[awaited].push_back(at);
      queues_[parts[at].lane].push_back(at);
      if (parts[at].window >= left_in_window_.size()) left_in_window_.resize(parts[at].window + 1);
      ++left_in_window_[parts[at].window];
    }
  }

  PartTiming run() && {
    open_windows();
    while (true) {
      start_parts();
      if (!advance()) break;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      if (next_[lane] < queues_[lane].size()) timing_.blocked.push_back(queues_[lane][next_[lane]]);
    return std::move(timing_);
  }

 private:
  /// Starts every part that can; parts without time end at once and may release others.
  void start_parts() {
    for (bool any = true; any;) {
      any = false;
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        if (running_[lane] != kNoPart || next_[lane] == queues_[lane].size()) continue;
        const std::uint32_t part = queues_[lane][next_[lane]];
        if (waiting_[part] > 0 || parts_[part].window > window_) continue;
        any = true;
        ++next_[lane];
        timing_.intervals[part] = {now_, now_, find_releasing(part, lane)};
        if (parts_[part].alone == 0) {
          end(part);
        } else {
          running_[lane] = part;
          left_[lane] = static_cast<PartWork>(parts_[part].alone) * kFullSpeed;
        }
      }
    }
  }

  /// Prefers a part that it waits for, then the one before it in its lane, to the end of a window.
  std::uint32_t find_releasing(std::uint32_t part, std::size_t lane) const {
    std::uint32_t found = ended_now_.empty() ? kNoPart : ended_now_.front();
    for (const std::uint32_t ended : ended_now_) {
      const std::vector<std::uint32_t>& after = parts_[part].after;
      if (std::find(after.begin(), after.end(), ended) != after.end()) return ended;
      if (parts_[ended].lane == lane) found = ended;
    }
    return found;
  }

  std::int64_t speed(std::size_t lane) const {
    double slowdown = 1;
    for (std::size_t other = 0; other < kLanes; ++other)
      if (other != lane && running_[other] != kNoPart)
        slowdown *= contention_.slowdown[lane][other];
    return slowdown == 1 ? kFullSpeed : std::llround(static_cast<double>(kFullSpeed) / slowdown);
  }

  /// Continues to the next end of a part; returns false if no part is running.
  bool advance() {
    std::array<std::int64_t, kLanes> speeds{};
    Nanos step = -1;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (running_[lane] == kNoPart) continue;
      speeds[lane] = speed(lane);
      const auto needed = static_cast<Nanos>((left_[lane] + speeds[lane] - 1) / speeds[lane]);
      if (step < 0 || needed < step) step = needed;
    }
    if (step < 0) return false;
    now_ += step;
    ended_now_.clear();
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (running_[lane] == kNoPart) continue;
      left_[lane] -= static_cast<PartWork>(step) * speeds[lane];
      if (left_[lane] > 0) continue;
      const std::uint32_t part = running_[lane];
      running_[lane] = kNoPart;
      end(part);
    }
    return true;
  }

  void end(std::uint32_t part) {
    timing_.intervals[part].end = now_;
    ended_now_.push_back(part);
    for (const std::uint32_t waiter : waiters_[part]) --waiting_[waiter];
    --left_in_window_[parts_[part].window];
    open_windows();
  }

  void open_windows() {
    while (window_ + 1 < left_in_window_.size() && left_in_window_[window_] == 0) ++window_;
  }

  std::span<const LanePart> parts_;
  const LaneContention& contention_;
  std::vector<std::size_t> waiting_;                 ///< per part, what it still waits for
  std::vector<std::vector<std::uint32_t>> waiters_;  ///< per part
  std::array<std::vector<std::uint32_t>, kLanes> queues_;
  std::array<std::size_t, kLanes> next_{};  ///< positions in the queues
  std::array<std::uint32_t, kLanes> running_{};
  std::array<PartWork, kLanes> left_{};
  std::vector<std::uint32_t> left_in_window_;
  std::size_t window_ = 0;  ///< the last one that is open
  Nanos now_ = 0;
  std::vector<std::uint32_t> ended_now_;
  PartTiming timing_;
};

}  // namespace

PartTiming time_parts(std::span<const LanePart> parts, const LaneContention& contention) {
  return LaneRun(parts, contention).run();
}

std::vector<PartShare> divide_time(std::span<const LanePart> parts,
                                   std::span<const PartInterval> intervals) {
  std::vector<PartShare> shares;
  // Walks back from the end of a gap in the compute lane, from each part to the one that released
  // it.
  const auto add_gap = [&](Nanos from, Nanos to, std::uint32_t part) {
    const auto before = static_cast<std::ptrdiff_t>(shares.size());
    while (to > from && part != kNoPart) {
      const Nanos start = std::max(from, intervals[part].start);
      if (start < to) shares.push_back({part, start, to});
      to = start;
      part = intervals[part].released_by;
    }
    std::reverse(shares.begin() + before, shares.end());
  };
  Nanos free = 0;
  std::uint32_t last = kNoPart;
  for (std::uint32_t at = 0; at < parts.size(); ++at) {
    if (last == kNoPart || intervals[at].end > intervals[last].end) last = at;
    if (parts[at].lane != kComputeLane) continue;
    const auto [start, end, released_by] = intervals[at];
    if (start > free) add_gap(free, start, released_by);
    if (start < end) shares.push_back({at, start, end});
    free = end;
  }
  if (last != kNoPart && intervals[last].end > free) add_gap(free, intervals[last].end, last);
  return shares;
}

}  // namespace bubblescope::inline sim
