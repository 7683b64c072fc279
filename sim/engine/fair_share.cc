// Progressive filling, restricted to the resources that a change can affect.
#include "sim/engine/fair_share.h"

#include <algorithm>
#include <limits>

namespace bubblescope::inline sim {

namespace {

constexpr Rate kNoLimit = std::numeric_limits<Rate>::max();

}  // namespace

FairShare::FairShare(const Traffic& traffic)
    : traffic_(traffic),
      states_(traffic.flows.size()),
      on_(traffic.resources.size()),
      uses_(traffic.resources.size()),
      used_since_(traffic.resources.size(), 0),
      visited_(traffic.resources.size(), 0),
      unassigned_(traffic.resources.size(), 0),
      flows_left_(traffic.resources.size(), 0) {}

void FairShare::account_use(std::uint32_t resource, Nanos now) {
  const Nanos span = now - used_since_[resource];
  if (!on_[resource].empty()) uses_[resource].busy += span;
  if (on_[resource].size() > 1) uses_[resource].shared += span;
  used_since_[resource] = now;
  dirty_.push_back(resource);
}

void FairShare::begin(FlowId flow, Nanos now) {
  const Flow& what = traffic_.flows[flow];
  states_[flow] = {what.load, now, 0, 0, visit_};
  for (const std::uint32_t resource : traffic_.path(what.path)) {
    account_use(resource, now);
    on_[resource].push_back(flow);
    uses_[resource].load += what.load;
  }
}

void FairShare::end(FlowId flow, Nanos now) {
  for (const std::uint32_t resource : traffic_.path(traffic_.flows[flow].path)) {
    account_use(resource, now);
    std::vector<FlowId>& on = on_[resource];
    *std::find(on.begin(), on.end(), flow) = on.back();
    on.pop_back();
  }
}

const std::vector<FlowId>& FairShare::settle(Nanos now) {
  changed_.clear();
  find_affected();
  if (!flows_.empty()) assign_rates();
  for (const std::uint32_t resource : resources_)
    for (const FlowId flow : on_[resource])
      if (states_[flow].share != states_[flow].rate) change_rate(flow, now);
  return changed_;
}

void FairShare::visit(std::uint32_t resource) {
  if (visited_[resource] == visit_) return;
  visited_[resource] = visit_;
  resources_.push_back(resource);
}

/// Collects the resources that a change affects: those that share a flow with a changed one, and so
/// on.
void FairShare::find_affected() {
  ++visit_;
  resources_.clear();
  flows_.clear();
  for (const std::uint32_t resource : dirty_) visit(resource);
  dirty_.clear();
  for (std::size_t at = 0; at < resources_.size(); ++at) {
    const std::uint32_t resource = resources_[at];
    unassigned_[resource] = traffic_.resources[resource].capacity;
    flows_left_[resource] = static_cast<std::int64_t>(on_[resource].size());
    for (const FlowId flow : on_[resource]) {
      if (states_[flow].visit == visit_) continue;
      states_[flow].visit = visit_;
      flows_.push_back(flow);
      for (const std::uint32_t other : traffic_.path(traffic_.flows[flow].path)) visit(other);
    }
  }
}

/// Every round fixes the flows whose maximum is no more than the smallest share of any resource, or
/// else all flows on that resource. No share is 0, so that no flow stalls on a resource with more
/// flows than units of capacity.
void FairShare::assign_rates() {
  for (const FlowId flow : flows_) states_[flow].share = 0;
  while (!flows_.empty()) {
    Rate smallest = kNoLimit;
    std::uint32_t tightest = resources_.front();
    for (const std::uint32_t resource : resources_) {
      if (flows_left_[resource] == 0) continue;
      const Rate share = std::max<Rate>(1, unassigned_[resource] / flows_left_[resource]);
      if (share < smallest) {
        smallest = share;
        tightest = resource;
      }
    }
    const std::size_t before = flows_.size();
    for (const FlowId flow : flows_)
      if (traffic_.flows[flow].max_rate <= smallest)
        assign_rate(flow, traffic_.flows[flow].max_rate);
    std::erase_if(flows_, [&](FlowId flow) { return states_[flow].share != 0; });
    if (flows_.size() == before) assign_rates_on(tightest, smallest);
  }
}

void FairShare::assign_rate(FlowId flow, Rate share) {
  states_[flow].share = share;
  for (const std::uint32_t resource : traffic_.path(traffic_.flows[flow].path)) {
    unassigned_[resource] -= share;
    --flows_left_[resource];
  }
}

void FairShare::assign_rates_on(std::uint32_t resource, Rate share) {
  for (const FlowId flow : on_[resource])
    if (states_[flow].share == 0) assign_rate(flow, share);
  std::erase_if(flows_, [&](FlowId flow) { return states_[flow].share != 0; });
}

void FairShare::change_rate(FlowId flow, Nanos now) {
  State& state = states_[flow];
  state.left -= state.rate * (now - state.since);
  state.since = now;
  state.rate = state.share;
  changed_.push_back(flow);
}

}  // namespace bubblescope::inline sim
