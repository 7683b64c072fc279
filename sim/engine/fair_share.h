// Fair sharing: the rate that every flow gets from the resources on its path, at one moment.
//
// Rates are max-min fair: all grow together until a resource is full or a flow reaches its maximum;
// these flows are fixed, and the others continue to grow. No flow could get more without taking
// from one that has no more than it.
//
// Example: three flows over a link of capacity 9, one of them limited to 1, get 1, 4 and 4.
//
// A rate is a whole number, rounded down, so that a resource never carries more than its capacity.
// A flow ends at the first whole nanosecond at which all of it has passed.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/units.h"
#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

/// Index into Traffic::flows.
using FlowId = std::uint32_t;

/// The use of one resource.
struct ResourceUse {
  LoadSum load = 0;
  Nanos busy = 0;    ///< time with at least one flow
  Nanos shared = 0;  ///< time with at least two flows
};

/// Tracks running flows; settle() recomputes their rates. Refers to the Traffic.
class FairShare {
 public:
  explicit FairShare(const Traffic& traffic);

  void begin(FlowId flow, Nanos now);
  void end(FlowId flow, Nanos now);

  /// Reassigns the capacity of all resources on which a flow began or ended. Returns the flows
  /// whose rate changed; valid until the next call.
  const std::vector<FlowId>& settle(Nanos now);

  Rate rate(FlowId flow) const { return states_[flow].rate; }

  /// When a flow will end if nothing changes.
  Nanos end_of(FlowId flow) const {
    const State& state = states_[flow];
    return state.since + uncontended_time(state.left, state.rate);
  }

  const std::vector<ResourceUse>& uses() const { return uses_; }

 private:
  struct State {
    Load left = 0;  ///< at `since`
    Nanos since = 0;
    Rate rate = 0;
    Rate share = 0;           ///< the rate that settle() is about to set
    std::uint32_t visit = 0;  ///< the last settle() that reached it
  };

  void account_use(std::uint32_t resource, Nanos now);
  void visit(std::uint32_t resource);
  void find_affected();
  void assign_rates();
  void assign_rate(FlowId flow, Rate share);
  void assign_rates_on(std::uint32_t resource, Rate share);
  void change_rate(FlowId flow, Nanos now);

  const Traffic& traffic_;
  std::vector<State> states_;             ///< per flow
  std::vector<std::vector<FlowId>> on_;   ///< per resource: the flows on it
  std::vector<ResourceUse> uses_;         ///< per resource
  std::vector<Nanos> used_since_;         ///< per resource: the time up to which its use is counted
  std::vector<std::uint32_t> dirty_;      ///< resources on which anything began or ended
  std::uint32_t visit_ = 0;               ///< number of this settle()
  std::vector<std::uint32_t> visited_;    ///< per resource: the last settle() that reached it
  std::vector<std::uint32_t> resources_;  ///< those that this settle() reached
  std::vector<FlowId> flows_;  ///< those that this settle() reached and that have no rate yet
  std::vector<FlowId> changed_;
  std::vector<Rate> unassigned_;          ///< per resource: capacity not yet assigned
  std::vector<std::int64_t> flows_left_;  ///< per resource: flows that have no rate yet
};

}  // namespace bubblescope::inline sim
