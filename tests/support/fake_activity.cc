// Records what is enqueued, and when it ran.
#include "tests/support/fake_activity.h"

#include <cmath>

namespace bubblescope::tests {

namespace {

constexpr std::int64_t kAhead = 1'000'000;

std::int64_t on_profilers_clock(double nanos) {
  return static_cast<std::int64_t>(std::round(nanos)) + kAhead;
}

}  // namespace

std::optional<std::size_t> FakeActivity::see(const SeenWork& work) {
  if (!is_on_) return std::nullopt;
  seen_.push_back({work, tag_});
  return seen_.size() - 1;
}

void FakeActivity::run(std::optional<std::size_t> seen, std::size_t stream, DeviceClock& clock,
                       const std::function<void()>& action) {
  if (!seen) return action();
  seen_[*seen].stream = stream;
  seen_[*seen].begin = clock.record(stream);
  action();
  seen_[*seen].end = clock.record(stream);
}

void FakeActivity::read(DeviceClock& clock, BubblescopeTakeActivity take, void* to) {
  std::uint32_t correlation = 0;
  for (const Seen& seen : seen_) {
    const std::optional<double> begin = seen.begin ? clock.time_of(*seen.begin) : std::nullopt;
    const std::optional<double> end = seen.end ? clock.time_of(*seen.end) : std::nullopt;
    if (!begin || !end) continue;
    BubblescopeActivity raw{};
    raw.correlation = ++correlation;
    if (seen.tag != 0) {
      raw.kind = kBubblescopeLaunchedBy;
      raw.tag = seen.tag;
      take(to, &raw);
      raw.tag = 0;
    }
    raw.kind = seen.work.kind;
    raw.stream = static_cast<std::uint32_t>(seen.stream);
    raw.start = on_profilers_clock(*begin);
    raw.end = on_profilers_clock(*end);
    raw.bytes = static_cast<std::int64_t>(seen.work.bytes);
    raw.name = seen.work.kind == kBubblescopeKernel ? seen.work.name.c_str() : nullptr;
    take(to, &raw);
  }
  seen_.clear();
}

}  // namespace bubblescope::tests
