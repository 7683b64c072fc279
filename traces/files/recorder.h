// Recorders of ops: what traces say of the ranks that they are of.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace bubblescope::traces {

/// A recorder of ops: one rank of a pipeline.
struct Recorder {
  std::string where;                 ///< for messages: "rank1.json"
  std::optional<std::int32_t> rank;  ///< its place in the pipeline, where the file says it
  std::string host = {};             ///< the machine, whose ranks share one clock; empty: unknown
  bool has_replica = false;          ///< the file states the `replica` of its ops
  bool is_by_job_rank = false;       ///< `replica` is the first rank in the job of its pipeline
  std::optional<std::int32_t> data_rank = {};  ///< its place in a group of data-parallel ranks
  std::optional<std::int32_t> tensor = {};     ///< its number among tensor-parallel ranks
  std::int64_t peers = 0;      ///< ranks of its pipeline, or of the job without replica; 0: unknown
  std::int64_t replicas = 0;   ///< pipelines of the job, at least; 0: unknown
  std::int64_t outsiders = 0;  ///< ranks outside of its pipeline that are in no known group
  bool is_process = false;     ///< `rank` is the number of a process, which may be any
  bool is_device = false;      ///< `rank` is the number of a device: devices are in rank order
  bool is_thread = false;      ///< it is a thread, which may be a part of a rank
  std::string process = {};    ///< its number on the host, where `rank` is certain; empty: unknown
  bool may_count_job = false;  ///< `rank` may count the ranks of all replicas, which are stated
  bool has_own_stage = false;  ///< the stages of its ops are `rank`, because nothing states any
  std::vector<std::vector<std::int64_t>> groups = {};  ///< of ranks of the job, for any purpose
  std::set<std::int64_t> partners = {};  ///< ranks of the job that exchange messages with it
};

}  // namespace bubblescope::traces
