// The cost file of `--costs FILE`: durations per stage, messages, links and memory.
// docs/cost_file.md has the whole schema.
//
//   {"format": "bubblescope-costs/1",
//    "stages": [
//      {"forward": "10.5ms", "input_grad": "10.1ms", "weight_grad": "9.3ms",
//       "activation_bytes": {"saved": "1.5GiB", "released_by_input_grad": "1GiB"},
//       "optimizer": "3ms", "reduce_grad": "8ms", "unshard": "4ms", "weight_bytes": "2GiB"},
//      {"forward": 12, "backward": 21.5}],
//    "copy": {"latency": "5us", "bandwidth_gbps": 200},
//    "message": {"latency": "12us", "bytes": "64MiB", "bandwidth_gbps": 400},
//    "norm": "150us",
//    "links": [{"from": 1, "to": 0, "latency": "30us"}],
//    "memory": {"static_bytes": ["12GiB", "11GiB"]},
//    "cluster": {...},                      nodes, and what messages share: cluster_entry.h
//    "ranks_per_device": 4, ...             and "contended" of stages: contention_entry.h
//    "measured": {...}}                     how it was measured (calibrate writes it); not read
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"
#include "traces/costs/cluster_entry.h"
#include "traces/costs/contention_entry.h"

namespace bubblescope::traces {

/// The entry of one stage (for one micro-batch, whole sequence); keys that are left out are empty.
struct StageEntry {
  Nanos forward = 0;
  std::optional<Nanos> backward;  ///< the full backward; input_grad + weight_grad unless given
  std::optional<Nanos> input_grad;
  std::optional<Nanos> weight_grad;
  std::optional<Nanos> recompute;            ///< forward unless given
  std::optional<Nanos> selective_recompute;  ///< only the attention core
  std::optional<Nanos> overlapped_pair;
  std::optional<Nanos> evict;  ///< of a forward's saved data; from CostFile::copy unless given
  std::optional<Nanos> load;   ///< evict unless given
  std::optional<Nanos> evict_to_rank;  ///< to another rank's memory; evict unless given
  std::optional<Nanos> load_from_rank;
  std::optional<MemoryDelta> activation_bytes;
  UpdateCost update;                          ///< 0 unless given
  std::optional<Bytes> weight_bytes;          ///< one copy of the weights
  std::optional<Bytes> checkpoint;            ///< saved where the whole stage is recomputed
  std::optional<Bytes> selective_checkpoint;  ///< saved where only attention is recomputed
  std::optional<ContentionEntry> contended;   ///< not slowed by others on its device unless given
};

/// The time of a copy between two memories: latency, plus the saved bytes over the bandwidth.
struct CopyEntry {
  Nanos latency = 0;
  std::optional<double> bandwidth_gbps;
  std::vector<double> slowdown = {};  ///< factors with 1, 2, ... ranks busy; empty: not slowed
};

/// The time of a message: latency, plus its bytes over the bandwidth where both are given.
struct Transfer {
  Nanos latency = 0;
  Bytes bytes = 0;
  std::vector<SpeedPoint> bandwidths;  ///< by size

  double nanos() const;
  LinkSpeed speed() const;
};

struct LinkEntry {
  std::int32_t from = 0;
  std::int32_t to = 0;
  Transfer transfer;
};

struct CostFile {
  std::string file;  ///< for messages
  std::vector<StageEntry> stages;
  Transfer message;
  std::vector<Nanos> contended_message;  ///< with 1, 2, ... ranks busy; empty: not slowed
  Nanos norm = 0;
  std::vector<LinkEntry> links;
  std::optional<ClusterEntry> cluster;
  std::optional<std::int32_t> ranks_per_device;  ///< all ranks share one unless given
  CopyEntry copy;
  std::optional<CopyEntry> copy_to_rank;  ///< to another rank's memory; copy unless given
  std::vector<Bytes> static_bytes;        ///< [rank]; empty where not given
};

/// Writes a measured time as cost files state it, to the nanosecond: "1500ns".
std::string write_cost_duration(Nanos time);

/// Reads a cost file; "-" is stdin. Throws Error with the JSON pointer of the first fault.
CostFile read_cost_file(const std::string& path);
CostFile parse_cost_file(std::string_view text, const std::string& file);

/// Returns the costs of a schedule's stages. A stage's durations are divided evenly among its
/// slices; the first slices take the remaining nanoseconds. Replicas in a second pipeline cost the
/// same as their originals.
/// Throws Error where the file has another number of stages, or lacks a duration that the schedule
/// needs (a split backward needs input_grad and weight_grad).
CostModel make_cost_model(const CostFile& file, const Schedule& schedule);

/// Whether a rank offloads to another rank instead of to the host.
bool offloads_to_rank(const Schedule& schedule, std::int32_t rank);

/// Returns the cluster of a schedule's ranks; nullopt where the file has none. An entry of `links`
/// for a pair of ranks overrides the speeds of their nodes.
std::optional<Cluster> cluster(const CostFile& file, const Schedule& schedule);

/// Returns the memory of a schedule's stages and ranks, in bytes where the file gives them. Throws
/// Error where it gives them for only some stages, or for another number of ranks.
MemoryModel make_memory_model(const CostFile& file, const Schedule& schedule);

}  // namespace bubblescope::traces
