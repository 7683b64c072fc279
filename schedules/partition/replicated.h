// PipeDream's planner: stages and their replicas on a hierarchy of workers (Narayanan et al.,
// "PipeDream: Generalized Pipeline Parallelism for DNN Training", 2019, section 3.1).
#pragma once

#include <optional>
#include <vector>

#include "schedules/partition/partition.h"

namespace bubblescope::schedules {

/// A level of the hierarchy with equal links: GPUs of a machine, machines of a rack.
struct WorkerLevel {
  std::int32_t workers = 1;    ///< units of the level below (or workers) in one unit
  Bytes bytes_per_second = 1;  ///< between them
};

struct ReplicationRequest {
  std::vector<WorkerLevel> levels;   ///< the innermost first
  bool straight = false;             ///< one worker per stage
  bool counts_transfers = false;     ///< whether activations between stages can be the bottleneck
  std::optional<Bytes> memory = {};  ///< of one worker, for weights and activations in flight
};

/// The partition with the shortest period that uses all workers. With T, W and a the sums of time,
/// weights and activations over a stage's layers, r replicas of it take
///   (T + 4 (r-1) W / (B r)) / r
/// per micro-batch, as each sends and receives (r-1)/r of the gradients and of the weights. Each
/// worker holds a + W for every micro-batch in flight: the workers from the stage on, over r,
/// rounded up. Empty if nothing fits. O(levels * prefixes^2 * workers^2).
std::optional<Partition> plan_replicated(const LayerGraph& graph,
                                         const ReplicationRequest& request);

/// Returns the micro-batches in flight on each stage: the number of workers from this stage to the
/// last, divided by the stage's replicas and rounded up.
std::vector<std::int32_t> in_flight(const Partition& partition);

}  // namespace bubblescope::schedules
