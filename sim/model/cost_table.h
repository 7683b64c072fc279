// The cost table: durations and bytes per stage, messages, links and memory, whatever the schedule.
// A cost file is read into one. The functions below derive from it the models of one schedule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/schedule.h"
#include "sim/model/cluster_entry.h"
#include "sim/model/contention.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"
#include "sim/model/noise.h"
#include "sim/model/part_costs.h"
#include "sim/model/stage_ends.h"
#include "sim/model/stage_entry.h"
#include "sim/model/stage_values.h"

namespace bubblescope::inline sim {

/// The time of a copy between two memories: latency, plus the saved bytes over the bandwidth.
struct CopyEntry {
  Nanos latency = 0;
  std::optional<double> bandwidth_gbps;
  std::vector<double> slowdown = {};  ///< factors with 1, 2, ... ranks busy; empty: not slowed
};

/// The time of a message: latency, plus its bytes over the bandwidth where both are given.
struct TransferEntry {
  Nanos latency = 0;
  Bytes bytes = 0;
  std::vector<SpeedPoint> bandwidths;  ///< by size

  double nanos() const;
  LinkSpeed speed() const;
};

struct LinkEntry {
  std::int32_t from = 0;
  std::int32_t to = 0;
  TransferEntry transfer;
};

/// Where a cost file gives the values of stages, for messages.
struct StagePlaces {
  std::string objects = "/stages";     ///< the list of objects; empty: all values are in the root
  std::string counted_by = "/stages";  ///< a list with an entry per stage
  bool activations_in_root = false;

  /// Returns "/stages/2: ", which begins a message about the object of a stage; empty for the root.
  std::string of_stage(std::size_t stage) const;
  std::string of_activations(std::size_t stage) const;  ///< "/stages/2/activation_bytes"
};

struct CostTable {
  std::string file;  ///< where it comes from, for messages
  StagePlaces places = {};
  std::vector<StageEntry> stages;  ///< where values differ, their mean; of bytes, the largest
  /// [stage]: the values that differ by micro-batch or slice; empty if none does.
  std::vector<std::vector<CostList>> lists = {};
  PartTable parts = {};                      ///< [stage]: the parts of ops; empty if no op has any
  std::vector<StageEntry> stage_kinds = {};  ///< the first stage, each between, the last; or empty
  bool same_stages = false;                  ///< the one entry of `stages` is that of every stage
  TransferEntry message;
  std::vector<Nanos> contended_message;  ///< with 1, 2, ... ranks busy; empty: not slowed
  Nanos norm = 0;
  Nanos op_gap = 0;              ///< between two ops of a rank, even if the second is ready
  std::optional<double> sm_mhz;  ///< the multiprocessors' clock at which ops take these times
  std::vector<LinkEntry> links;
  std::optional<ClusterEntry> cluster;
  std::optional<std::int32_t> ranks_per_device;  ///< all ranks share one unless given
  std::optional<KindWeights> kind_weights;  ///< how contention depends on what runs beside what
  CopyEntry copy;
  std::optional<CopyEntry> copy_to_rank;  ///< to another rank's memory; copy unless given
  std::vector<Bytes> static_bytes;        ///< [rank]; empty where not given
  /// [replica][stage]: the durations of data-parallel replicas; empty: all take those of `stages`.
  std::vector<std::vector<StageEntry>> replicas;
  std::vector<Nanos> late_starts;  ///< [replica]: after the earliest one's; empty: all together
  Nanos late_start(std::size_t replica) const;
  std::optional<Noise> noise;  ///< how steps differ; given where the costs were measured
  /// The part of a step outside the pipeline: gathering, reduction of gradients, optimizer.
  Nanos outside_pipeline = 0;
  /// Whether stages may be cut and joined for schedules of another number of stages.
  bool divisible = false;
  Ends ends = Ends::kMoreLayers;  ///< for divisible stages
};

/// Whether values differ by micro-batch or slice.
inline bool has_lists(const CostTable& table) { return !table.lists.empty(); }

/// Whether an overlapped pair takes less time than its two ops one after the other.
bool shortens_pairs(const CostTable& table);

/// Returns the costs of a schedule's stages. A stage's durations are divided evenly among its
/// slices; the first slices take the rest. Replicas in a second pipeline cost what their originals
/// do. `saved` holds where an entry does not say what the forward of a stage that recomputes saves.
/// Throws Error where the file has another number of stages, or lacks a duration that is needed.
CostModel make_cost_model(const CostTable& table, const Schedule& schedule,
                          const SavedFractions& saved = {});

/// Whether a rank offloads to another rank instead of to the host.
bool offloads_to_rank(const Schedule& schedule, std::int32_t rank);

/// Returns the cluster of a schedule's ranks; nullopt where the file has none. An entry of `links`
/// for a pair of ranks overrides the speeds of their nodes.
std::optional<Cluster> make_cluster(const CostTable& table, const Schedule& schedule);

/// Returns the memory of a schedule's stages and ranks, in bytes where the file gives them. Throws
/// Error where it gives them for only some stages, or for another number of ranks.
MemoryModel make_memory_model(const CostTable& table, const Schedule& schedule,
                              const SavedFractions& saved = {});

/// Returns how a schedule's ranks slow each other; nullopt where the file says nothing about it.
/// Throws Error where an op is faster under contention than alone.
std::optional<Contention> make_contention(const CostTable& table, const Schedule& schedule);

}  // namespace bubblescope::inline sim
