// Fair sharing: what every flow gets of the resources that it passes, at one moment.
//
// Shares are max-min fair: they grow together until a resource is full or a flow has all that it
// can take; those are fixed, and the others grow on. No flow could get more without another, that
// has no more than it, getting less.
//
// The one place where anything is rounded: a share is a whole Rate, rounded down, so that never
// more than its capacity passes a resource; and a flow ends at the first whole nanosecond at which
// all of it is through.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/units.h"
#include "sim/model/traffic.h"

namespace bubblescope {

/// Index into Traffic::flows.
using FlowId = std::uint32_t;

/// What passed one resource.
struct ResourceUse {
  Load load = 0;
  Nanos busy = 0;    ///< time with anything on it
  Nanos shared = 0;  ///< time with two flows or more on it
};

/// Flows begin and end; settle() says from when on they have which share. Refers to the Traffic.
class FairShare {
 public:
  explicit FairShare(const Traffic& traffic);

  void begin(FlowId flow, Nanos now);
  void end(FlowId flow, Nanos now);

  /// Deals out the resources that anything began or ended on. Returns the flows whose share
  /// changed; valid until the next call.
  const std::vector<FlowId>& settle(Nanos now);

  Rate rate(FlowId flow) const { return states_[flow].rate; }

  /// When a flow will be through if nothing changes any more.
  Nanos end_of(FlowId flow) const {
    const State& state = states_[flow];
    return state.since + time_alone(state.left, state.rate);
  }

  const std::vector<ResourceUse>& uses() const { return uses_; }

 private:
  struct State {
    Load left = 0;  ///< at `since`
    Nanos since = 0;
    Rate rate = 0;
    Rate share = 0;           ///< what settle() is about to give it
    std::uint32_t visit = 0;  ///< the last settle() that saw it
  };

  void touch(std::uint32_t resource, Nanos now);
  void visit(std::uint32_t resource);
  void find_concerned();
  void deal();
  void fix(FlowId flow, Rate share);
  void fix_all_on(std::uint32_t resource, Rate share);
  void change_rate(FlowId flow, Nanos now);

  const Traffic& traffic_;
  std::vector<State> states_;             ///< per flow
  std::vector<std::vector<FlowId>> on_;   ///< per resource: the flows on it
  std::vector<ResourceUse> uses_;         ///< per resource
  std::vector<Nanos> used_since_;         ///< per resource: until when its use is counted
  std::vector<std::uint32_t> dirty_;      ///< resources on which anything began or ended
  std::uint32_t visit_ = 0;               ///< number of this settle()
  std::vector<std::uint32_t> visited_;    ///< per resource: the last settle() that saw it
  std::vector<std::uint32_t> resources_;  ///< those of this settle()
  std::vector<FlowId> flows_;             ///< those of this settle() that have no share yet
  std::vector<FlowId> changed_;
  std::vector<Rate> left_;             ///< per resource: what is not dealt out yet
  std::vector<std::int64_t> waiting_;  ///< per resource: flows that have no share yet
};

}  // namespace bubblescope
