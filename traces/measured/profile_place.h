// Locates a profile in a job with several kinds of parallelism, from PyTorch's distributedInfo: its
// rank in the pipeline group, and whether it duplicates a tensor-parallel peer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

struct ProfilePlace {
  std::optional<std::int32_t> rank;       ///< in the pipeline, or the global rank without a group
  std::optional<std::int32_t> replica;    ///< the lowest global rank of its pipeline group
  std::optional<std::int32_t> data_rank;  ///< in its data-parallel group
  std::int64_t ranks = 0;                 ///< number of ranks of the pipeline; 0 if unknown
  std::int64_t replicas = 0;              ///< pipelines of the job, at least; 0 if unknown
  std::int64_t outsiders = 0;             ///< ranks of the job of which no group says what they do
  /// Where no group is the pipeline's: those that contain the rank, and with whom it exchanges
  /// messages, both by ranks of the job.
  std::vector<std::vector<std::int64_t>> groups;
  std::set<std::int64_t> partners;
  std::string process;          ///< its number on the host; empty without a rank
  bool is_tensor_peer = false;  ///< not the first of its tensor-parallel group
};

/// Throws Error for impossible ranks, and for messages to a rank outside the pipeline's process
/// group. `file` is the name for messages.
ProfilePlace locate_in_job(const ChromeEvents& events, const std::string& file);

/// Returns the recorder of a profile in this place.
Recorder make_recorder(const ProfilePlace& place, const std::string& host, const std::string& file);

}  // namespace bubblescope::traces
