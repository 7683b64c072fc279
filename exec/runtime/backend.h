// What runs a Program: a Backend, whose one virtual is to run a step of it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/runtime/limits.h"
#include "exec/runtime/processes.h"
#include "exec/runtime/work.h"
#include "sim/ir/program.h"
#include "sim/ir/registry.h"
#include "sim/ir/units.h"
#include "sim/model/injection.h"

namespace bubblescope::exec {

/// When one instruction ran.
struct Span {
  InstructionId id = 0;
  Nanos start = 0;
  Nanos end = 0;
};

/// The state of a lane when the step was stopped.
struct BlockedAt {
  InstructionId at = 0;                  ///< the first instruction that has not ended
  bool started = false;                  ///< its own work had begun
  std::optional<InstructionId> awaited;  ///< what it waited for; empty: it was about to start
};

/// The reason why a step was stopped.
enum class AbortReason : std::uint8_t { kNone, kFailure, kTimeout, kInterrupt };

/// The result of one rank in one step.
struct RankResult {
  std::vector<Span> spans;  ///< of instructions that started; an interrupted one ends at the stop
  std::vector<BlockedAt>
      stopped;  ///< one per lane that did not finish; empty after a complete step
  AbortReason reason = AbortReason::kNone;  ///< the same on all ranks
  std::exception_ptr failure;               ///< the exception that this rank's work threw
};

/// What one process hears of the others while a step runs.
struct StepNews {
  bool progressed = false;                ///< something has ended there
  AbortReason stop = AbortReason::kNone;  ///< the step was stopped there
};

/// Runs one Program, step after step. Its threads, streams and connections are there as long as it
/// lives.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Runs every instruction of the Program once. Returns what each rank did, by rank, when all have
  /// done their part or were stopped.
  virtual std::vector<RankResult> run_step() = 0;
};

/// Parameters of every backend.
struct BackendRequest {
  Work work;
  Injections injections;
  PayloadCodec payload_codec = {};
  bool high_priority = false;      ///< the work only passes time: its lanes may take priority
  Nanos timeout = 30'000'000'000;  ///< without progress for this long, all ranks stop
  /// All ranks also stop when this becomes true; may be null; not owned.
  const std::atomic<bool>* interrupted = nullptr;
};

struct Job;  // exec/gpu/host/job.h
struct JobRequest;
struct MessageTime;
struct DeviceOptions;

/// A backend as the registry knows it.
struct BackendDef {
  std::string name;
  std::vector<std::string> aliases;
  std::string summary;  ///< one line for `list backends`
  /// For backends whose work is done by the host. The Program is not copied. Throws Error.
  std::function<std::unique_ptr<Backend>(BackendRequest request, const Program& program)> make;
  /// Finds the other processes; empty for backends that run all ranks in this one. Throws Error.
  std::function<std::unique_ptr<Processes>(const Limits& limits)> join = {};
  /// Instead, for those that enqueue it on devices; the request's work is empty. Throws Error.
  std::function<Job(const JobRequest& job, BackendRequest request)> start = {};
  /// For backends with `start`: measures messages of several sizes between this many ranks; may be
  /// empty. Throws Error.
  std::function<std::vector<MessageTime>(std::int32_t ranks, const DeviceOptions& device)>
      time_messages = {};
  /// Measures copies to host memory likewise; empty if activations are not offloaded to the host.
  std::function<std::vector<MessageTime>(std::int32_t ranks, const DeviceOptions& device)>
      time_host_copies = {};
};

using BackendRegistrar = Registrar<BackendDef>;

/// Finds a backend by name. Throws Error with the nearest known name.
const BackendDef& find_backend(const std::string& name);

}  // namespace bubblescope::exec
