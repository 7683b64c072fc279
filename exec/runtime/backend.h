// What runs a Program: a Backend, whose one virtual is to run a step of it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/runtime/injection.h"
#include "exec/runtime/limits.h"
#include "exec/runtime/processes.h"
#include "exec/runtime/work.h"
#include "sim/ir/program.h"
#include "sim/ir/registry.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// When one instruction ran.
struct Span {
  InstructionId id = 0;
  Nanos start = 0;
  Nanos end = 0;
};

/// Where a lane stood when the step was stopped.
struct Stand {
  InstructionId at = 0;                  ///< the instruction at its head
  bool started = false;                  ///< it was in its own work
  std::optional<InstructionId> awaited;  ///< what it waited for; empty: it was about to start
};

/// Why a step was stopped.
enum class Stop : std::uint8_t { kNone, kFailure, kTimeout, kInterrupt };

/// What one rank did in one step.
struct RankResult {
  std::vector<Span> spans;     ///< of what started; what was stopped ends when it was
  std::vector<Stand> stopped;  ///< one per lane that did not get to its end; empty: all is done
  Stop reason = Stop::kNone;   ///< the same on every rank
  std::exception_ptr failure;  ///< what this rank's work threw
};

/// What one process hears of the others while a step runs.
struct StepNews {
  bool goes_on = false;     ///< something has ended there
  Stop stop = Stop::kNone;  ///< the step was stopped there
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

/// What every backend is given.
struct BackendRequest {
  Work work;
  Injections injections;
  Cargo cargo = {};
  bool punctual = false;  ///< the work only lets time pass: its lanes may go before other threads
  Nanos timeout = 30'000'000'000;  ///< every rank stops when nothing has ended for this long
  /// Every rank also stops when this becomes true; may be null. Not owned.
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
  /// Of these, what messages of several sizes take among so many ranks; may be empty. Throws Error.
  std::function<std::vector<MessageTime>(std::int32_t ranks, const DeviceOptions& device)>
      time_messages = {};
  /// The same to the host's memory; empty where activations are not moved there.
  std::function<std::vector<MessageTime>(std::int32_t ranks, const DeviceOptions& device)>
      time_host_copies = {};
};

using BackendRegistrar = Registrar<BackendDef>;

/// The backend of this name. Throws Error with the nearest known name.
const BackendDef& find_backend(const std::string& name);

}  // namespace bubblescope
