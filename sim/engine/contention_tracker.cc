// Counts the busy ranks of each device.
#include "sim/engine/contention_tracker.h"

#include <algorithm>
#include <numeric>

#include "sim/model/contention.h"

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

ContentionTracker::KindCounts ContentionTracker::count_kinds(
    const std::vector<ContendedOpId>& on) const {
  KindCounts counts{};
  for (const ContendedOpId op : on)
    if (traffic_.contended_ops[op].computes)
      ++counts[static_cast<std::size_t>(traffic_.contended_ops[op].kind)];
  return counts;
}

Rate ContentionTracker::progress_rate_of(ContendedOpId id, KindCounts busy) const {
  const ContendedOp& op = traffic_.contended_ops[id];
  const std::vector<Rate>& progress_rates = traffic_.progress_rates[op.rates_row];
  const auto kind = static_cast<std::size_t>(op.kind);
  if (op.computes) --busy[kind];
  const auto others =
      static_cast<std::size_t>(std::accumulate(busy.begin(), busy.end(), std::int32_t{0}));
  const Rate usual = progress_rates[std::min(others, progress_rates.size() - 1)];
  if (!op.computes || !traffic_.kind_weights || others == 0) return usual;
  double weight = 0;
  for (std::size_t beside = 0; beside < busy.size(); ++beside)
    weight += (*traffic_.kind_weights)[kind][beside] * busy[beside];
  const double excess = static_cast<double>(kFullProgressRate) / static_cast<double>(usual) - 1;
  return sim::progress_rate_of(1 + excess * weight / static_cast<double>(others));
}

void ContentionTracker::update_progress_rates(std::vector<ContendedOpId>& on, Nanos now) {
  const KindCounts busy = count_kinds(on);
  for (const ContendedOpId op : on) {
    const Rate progress_rate = progress_rate_of(op, busy);
    State& state = states_[op];
    if (progress_rate == state.progress_rate) continue;
    state.left -= WorkParts{state.progress_rate} * (now - state.since);
    state.since = now;
    state.progress_rate = progress_rate;
    changed_.push_back(op);
  }
}

}  // namespace bubblescope::inline sim
