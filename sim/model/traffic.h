// Traffic: what every instruction of a Program asks of the resources that instructions share.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/model/cluster.h"
#include "sim/model/cost_model.h"

namespace bubblescope {

/// A link or one direction of a device. All that flows through it shares its capacity.
struct Resource {
  std::string name;  ///< "link 0>1", "nic 0 out"
  Rate capacity = 0;
};

/// Bytes that pass a path of resources together.
struct Flow {
  InstructionId instruction = 0;
  Load load = 0;     ///< above 0
  Rate fastest = 0;  ///< what it gets alone: no resource of its path has less
  std::uint32_t path = 0;
};

/// What an op does of itself in a nanosecond while nothing slows it, in parts.
inline constexpr Rate kWholePace = 720'720;

/// A compute op on a device where other ranks compute too, or a message that leaves it.
struct CompanyOp {
  InstructionId instruction = 0;
  std::uint32_t device = 0;
  std::uint32_t paces = 0;  ///< a row of Traffic::paces
  bool computes = true;     ///< and makes its rank a busy one
};

/// An instruction takes its fixed time (a message's latency); then, if it has a flow, until its
/// bytes are through. An op in company takes its fixed time at the pace that the number of busy
/// ranks of its device leaves it.
struct Traffic {
  std::vector<Nanos> fixed;  ///< per instruction
  std::vector<Flow> flows;   ///< in order of their instructions
  std::vector<Resource> resources;
  std::vector<std::uint32_t> path_begin{0};  ///< one entry per path, and the end
  std::vector<std::uint32_t> path_resources;
  std::vector<CompanyOp> company;  ///< in order of their instructions
  std::uint32_t devices = 0;       ///< on which these are
  /// Each row by number of busy ranks, from 1, or from 0 for messages; with more, as with the last.
  std::vector<std::vector<Rate>> paces;

  std::span<const std::uint32_t> path(std::uint32_t at) const {
    return {path_resources.data() + path_begin[at], path_begin[at + 1] - path_begin[at]};
  }
};

/// How long a flow takes when nothing shares its path: the first whole nanosecond at which all of
/// it is through.
inline Nanos time_alone(Load load, Rate rate) { return (load + rate - 1) / rate; }

/// Lets a Program's messages flow through a cluster. `durations` are its instructions', as price()
/// gives them; those of messages are not used.
/// Throws Error where the cluster has another number of ranks.
Traffic route_messages(const Program& program, std::span<const Nanos> durations,
                       const Cluster& cluster);

/// What a message between two ranks takes with nothing shared.
Nanos message_alone(const Cluster& cluster, std::int32_t from, std::int32_t to);

/// Gives the messages of a schedule what they take with nothing shared. Pairs of ranks that have no
/// messages keep what they had.
CostModel with_messages_alone(CostModel costs, const Cluster& cluster, const Schedule& schedule);

/// Durations with nothing shared: what the dataflow pass takes.
std::vector<Nanos> durations_alone(const Traffic& traffic);

}  // namespace bubblescope
