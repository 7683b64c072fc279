// Adds up calls and receives within the steps of a profile.
#include "traces/measured/lost_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// Less than this share of the steps misleads no replay.
constexpr double kNoticed = 0.02;
constexpr Nanos kLong = 1'000'000;  ///< a call that only posts a message takes less

/// The steps of a profile, from the first op to the last.
class Steps {
 public:
  explicit Steps(const std::vector<ObservedOp>& ops) {
    for (const auto& [_, extent] :
         find_extents(ops, [](const ObservedOp& op) { return std::optional(op.step); })) {
      extents_.push_back(extent);
      length_ += extent.length();
    }
    sort_by_start(extents_);
  }

  bool contain(Nanos time) const { return lies_in(extents_, time); }

  double share_of(Nanos time) const {
    return length_ <= 0 ? 0 : static_cast<double>(time) / static_cast<double>(length_);
  }

 private:
  std::vector<TimeSpan> extents_;
  Nanos length_ = 0;
};

/// Finds data that is loaded outside of the ops, but within their step.
std::optional<LostTime> find_loading(const ChromeEvents& events, const std::vector<ObservedOp>& ops,
                                     const Steps& steps, const std::string& file) {
  std::vector<TimeSpan> spans;
  for (const ObservedOp& op : ops)
    if (is_compute(op.op.kind)) spans.push_back({op.start, op.end});
  const Nanos computing = cover(spans);
  std::int64_t loads = 0;
  for (const ProfiledEvent& event : events.profiled) {
    if (!loads_data(event.activity) || !steps.contain(event.start)) continue;
    ++loads;
    spans.push_back({event.start, event.end});
  }
  const double share = steps.share_of(cover(spans) - computing);
  if (share < kNoticed) return {};
  return LostTime{
      share, fmt::format("{}: data is loaded {} times between the ops of a pipeline, {:.1f} % of "
                         "the steps, by annotations such as enumerate(DataLoader): no op or "
                         "message stands for that; load it ahead, by workers of the DataLoader",
                         file, loads, 100 * share)};
}

}  // namespace

std::vector<LostTime> find_lost_time(const ChromeEvents& events, const std::vector<ObservedOp>& ops,
                                     const std::string& file) {
  const Steps steps(ops);
  std::int64_t calls = 0;
  Nanos posting = 0;
  Nanos longest = 0;
  for (const ProfiledEvent& event : events.profiled) {
    if (event.activity != Activity::kSend && event.activity != Activity::kReceive) continue;
    const Nanos time = event.end - event.start;
    if (time < kLong || !steps.contain(event.start)) continue;
    ++calls;
    posting += time;
    longest = std::max(longest, time);
  }
  std::int64_t early = 0;
  Nanos waiting = 0;
  for (const ObservedOp& op : ops) {
    if (op.op.kind != OpKind::kRecvForward || op.chunk || op.op.stage != 0) continue;
    ++early;
    waiting += op.end - op.start;
  }
  std::vector<LostTime> found;
  if (std::optional<LostTime> loading = find_loading(events, ops, steps, file))
    found.push_back(*std::move(loading));
  if (const double share = steps.share_of(posting); share >= kNoticed)
    found.push_back(
        {share,
         fmt::format("{}: {} calls that post messages (c10d::send, c10d::recv_) take 1 ms or "
                     "longer (up to {}), together {:.1f} % of the steps: the host is busy with "
                     "them, and no op or message stands for that",
                     file, calls, format_time(longest), 100 * share)});
  if (const double share = steps.share_of(waiting); share >= kNoticed)
    found.push_back(
        {share,
         fmt::format("{}: {} forwards of the first stage, which need no message, are preceded by "
                     "receives that the rank waits for, {:.1f} % of the steps: they are for later "
                     "ops, as runtimes wait that post several messages at once (PyTorch up to "
                     "2.9, Megatron-LM unless messages overlap), and a replay lets "
                     "an op wait for its own input only",
                     file, early, 100 * share)});
  return found;
}

}  // namespace bubblescope::traces
