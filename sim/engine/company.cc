// Counts the busy ranks of each device.
#include "sim/engine/company.h"

#include <algorithm>

namespace bubblescope {

Company::Company(const Traffic& traffic)
    : traffic_(traffic), states_(traffic.company.size()), on_(traffic.devices) {}

void Company::begin(CompanyId op, Nanos alone, Nanos now) {
  states_[op] = {Parts{alone} * kWholePace, now, 0};
  const std::uint32_t device = traffic_.company[op].device;
  on_[device].push_back(op);
  dirty_.push_back(device);
}

void Company::end(CompanyId op) {
  const std::uint32_t device = traffic_.company[op].device;
  std::erase(on_[device], op);
  dirty_.push_back(device);
}

const std::vector<CompanyId>& Company::settle(Nanos now) {
  changed_.clear();
  for (const std::uint32_t device : dirty_) set_paces(on_[device], now);
  dirty_.clear();
  return changed_;
}

void Company::set_paces(std::vector<CompanyId>& on, Nanos now) {
  const auto busy = static_cast<std::size_t>(std::count_if(
      on.begin(), on.end(), [this](CompanyId op) { return traffic_.company[op].computes; }));
  for (const CompanyId op : on) {
    const std::vector<Rate>& paces = traffic_.paces[traffic_.company[op].paces];
    const std::size_t others = busy - (traffic_.company[op].computes ? 1 : 0);
    const Rate pace = paces[std::min(others, paces.size() - 1)];
    State& state = states_[op];
    if (pace == state.pace) continue;
    state.left -= Parts{state.pace} * (now - state.since);
    state.since = now;
    state.pace = pace;
    changed_.push_back(op);
  }
}

}  // namespace bubblescope
