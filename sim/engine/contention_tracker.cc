// Counts the busy ranks of each device.
#include "sim/engine/contention_tracker.h"

#include <algorithm>

namespace bubblescope::inline sim {

ContentionTracker::ContentionTracker(const Traffic& traffic)
    : traffic_(traffic), states_(traffic.contended_ops.size()), on_(traffic.devices) {}

void ContentionTracker::begin(ContendedOpId op, Nanos alone, Nanos now) {
  states_[op] = {WorkParts{alone} * kFullProgressRate, now, 0};
  const std::uint32_t device = traffic_.contended_ops[op].device;
  on_[device].push_back(op);
  dirty_.push_back(device);
}

void ContentionTracker::end(ContendedOpId op) {
  const std::uint32_t device = traffic_.contended_ops[op].device;
  std::erase(on_[device], op);
  dirty_.push_back(device);
}

const std::vector<ContendedOpId>& ContentionTracker::settle(Nanos now) {
  changed_.clear();
  for (const std::uint32_t device : dirty_) update_progress_rates(on_[device], now);
  dirty_.clear();
  return changed_;
}

void ContentionTracker::update_progress_rates(std::vector<ContendedOpId>& on, Nanos now) {
  const auto busy =
      static_cast<std::size_t>(std::count_if(on.begin(), on.end(), [this](ContendedOpId op) {
        return traffic_.contended_ops[op].computes;
      }));
  for (const ContendedOpId op : on) {
    const std::vector<Rate>& progress_rates =
        traffic_.progress_rates[traffic_.contended_ops[op].progress_rates];
    const std::size_t others = busy - (traffic_.contended_ops[op].computes ? 1 : 0);
    const Rate progress_rate = progress_rates[std::min(others, progress_rates.size() - 1)];
    State& state = states_[op];
    if (progress_rate == state.progress_rate) continue;
    state.left -= WorkParts{state.progress_rate} * (now - state.since);
    state.since = now;
    state.progress_rate = progress_rate;
    changed_.push_back(op);
  }
}

}  // namespace bubblescope::inline sim
