// Exports of Nsight Systems with known truth, after those of real runs: processes as ranks, host
// ranges ahead of the device, kernels linked to their launches by correlation ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/recorded_step.h"

namespace bubblescope::tests {

/// The rows of one export.
struct NsysEvents {
  struct Range {
    std::int64_t thread = 0;
    Nanos start = 0;
    Nanos end = 0;
    std::string name;
  };
  struct Call {
    std::int64_t thread = 0;
    Nanos start = 0;
    std::int64_t correlation = 0;
  };
  struct Kernel {
    std::int64_t process = 0;
    Nanos start = 0;
    Nanos end = 0;
    std::int64_t correlation = 0;
    std::string name;
    int stream = 7;
  };
  std::vector<Range> ranges;
  std::vector<Call> calls;
  std::vector<Kernel> kernels;
};

/// The framework that named the ranges.
enum class NsysNames : std::uint8_t {
  kOps,                   ///< PyTorch's pipelining: "PP:0F3"
  kEmitNvtx,              ///< the same under emit_nvtx: "PP:0F3, op_id = 11"
  kZeroBubble,            ///< the zero-bubble fork: "F3.0.0"
  kMegatron,              ///< Megatron-LM's messages; ops have no range
  kInterleaved,           ///< those of Megatron-LM's interleaved schedule
  kOverlapped,            ///< the same under --overlap-p2p-communication
  kFunctions,             ///< "megatron.core.pipeline_parallel.schedules.forward_step"
  kFunctionsAndMessages,  ///< the same, and Megatron-LM's messages
  kDeepSpeed,  ///< DeepSpeedEngine.forward; backwards have a range on the last stage only
  kPasses,     ///< DeepSpeed's instructions: "PipelineEngine._exec_forward_pass"
};

/// How the tables look; they changed over the releases.
enum class NsysSchema : std::uint8_t {
  k2021,  ///< texts in the rows
  k2023,  ///< texts of ranges by id
  k2025,  ///< likewise, with more columns and the time of the session's start
};

struct NsysJob {
  NsysNames names = NsysNames::kOps;
  int steps = 3;
  bool autograd_thread = true;    ///< backward kernels are launched by a second thread
  bool unnamed_messages = false;  ///< messages have kernels, but no range
  bool posts_early = false;  ///< receives run from the end of the op before, not just at arrival
  Nanos reduction = 0;       ///< of gradients, on a stream of its own from amid the last backward
};

/// The process of a rank, as globalPid has it.
inline std::int64_t nsys_process(std::int32_t rank) {
  return (std::int64_t{3} << 56) | (std::int64_t{4000 + rank} << 24);
}

/// The recording that `job` would make of `step`, repeated. Each op has three kernels, of which the
/// first starts and the last ends with the op.
NsysEvents record_nsys(const RecordedStep& step, const NsysJob& job);

/// Keeps only the events of one rank.
NsysEvents of_rank(const NsysEvents& events, std::int32_t rank);

/// Writes the tables by libsqlite3; false where there is none. `epoch` is the start of the session,
/// where the schema has it.
bool write_nsys(const std::string& path, const NsysEvents& events, NsysSchema schema,
                std::int64_t epoch = 0);

/// Writes a database of these statements, likewise.
bool write_database(const std::string& path, const std::string& sql);

}  // namespace bubblescope::tests
