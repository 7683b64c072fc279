// Traffic: how instructions of a Program use shared resources and shared devices.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/program.h"
#include "sim/model/cluster.h"
#include "sim/model/cost_model.h"

namespace bubblescope::inline sim {

/// A link or one direction of a device. All flows through it share its capacity.
struct Resource {
  std::string name;  ///< "link 0>1", "nic 0 out"
  Rate capacity = 0;
};

/// Bytes that pass all resources of a path at the same rate.
struct Flow {
  InstructionId instruction = 0;
  Load load = 0;      ///< above 0
  Rate max_rate = 0;  ///< its rate alone: the smallest capacity on its path
  std::uint32_t path = 0;
};

/// The progress rate of an op alone: parts of its work per nanosecond.
inline constexpr Rate kFullProgressRate = 720'720;

/// A contended op: a compute op, or a message or copy, on a device where several ranks compute.
struct ContendedOp {
  InstructionId instruction = 0;
  std::uint32_t device = 0;
  std::uint32_t rates_row = 0;     ///< index into Traffic::progress_rates
  bool computes = true;            ///< makes its rank busy
  OpKind kind = OpKind::kForward;  ///< of a compute op
};

/// [kind][other kind]: the factor on an op's slowdown beyond 1 while an op of the other kind runs
/// on its device. It is 1 for kinds that slow it as much as others do on average.
using KindWeights = std::array<std::array<double, kComputeKinds>, kComputeKinds>;

/// All 1: what runs beside an op makes no difference.
KindWeights equal_kind_weights();

/// An instruction takes its fixed time (for a message, the latency); a flow then lasts until its
/// bytes have passed. A contended op does its fixed time's work at the progress rate for the number
/// of busy ranks on its device.
struct Traffic {
  std::vector<Nanos> fixed;  ///< per instruction
  std::vector<Flow> flows;   ///< in order of their instructions
  std::vector<Resource> resources;
  std::vector<std::uint32_t> path_begin{0};  ///< one entry per path, and the end
  std::vector<std::uint32_t> path_resources;
  std::vector<ContendedOp> contended_ops;  ///< in order of their instructions
  std::uint32_t devices = 0;               ///< number of devices with contended ops
  /// Rows indexed by the number of busy ranks, from 1 for compute ops and from 0 for messages;
  /// beyond the last entry, the last.
  std::vector<std::vector<Rate>> progress_rates;
  /// A compute op's slowdown beyond 1 is that of its row times the mean weight of the ops beside
  /// it.
  std::optional<KindWeights> kind_weights = {};

  std::span<const std::uint32_t> path(std::uint32_t at) const {
    return {path_resources.data() + path_begin[at], path_begin[at + 1] - path_begin[at]};
  }
};

/// The duration of a flow that is alone on its path: the first whole nanosecond at which all of it
/// has passed.
inline Nanos uncontended_time(Load load, Rate rate) { return (load + rate - 1) / rate; }

/// Routes a Program's messages through a cluster. `durations` are those of price(); the entries of
/// messages are ignored. Throws Error if the cluster has another number of ranks.
Traffic route_messages(const Program& program, std::span<const Nanos> durations,
                       const Cluster& cluster);

/// Returns the duration of a message between two ranks with nothing shared.
Nanos uncontended_message_time(const Cluster& cluster, std::int32_t from, std::int32_t to);
/// Returns the same duration for a message of this size.
Nanos uncontended_message_time(const Cluster& cluster, std::int32_t from, std::int32_t to,
                               Bytes bytes);

/// Sets the message durations of a schedule to those with nothing shared. Pairs of ranks without
/// messages keep theirs.
CostModel with_uncontended_messages(CostModel costs, const Cluster& cluster,
                                    const Schedule& schedule);

}  // namespace bubblescope::inline sim
