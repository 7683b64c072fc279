// A backend runs a Program for real, one step after another. It has one virtual function,
// run_step(), which executes every instruction once and reports when each one ran.
//
// A step ends early if a rank fails, nothing ends within the timeout, or the user interrupts it.
// All ranks then abort, and every result has the same AbortReason:
//
//   rank 0: reason kFailure, failure: the exception that op 0F2 threw
//   rank 1: reason kFailure, blocked at 1F2, which awaits 0F2
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exec/runtime/limits.h"
#include "exec/runtime/processes.h"
#include "exec/runtime/rank_result.h"
#include "exec/runtime/ready_queue.h"
#include "exec/runtime/work.h"
#include "sim/ir/program.h"
#include "sim/ir/registry.h"
#include "sim/ir/units.h"
#include "sim/model/injection.h"

namespace bubblescope::exec {

/// The reports of other processes since the last poll.
struct PeerUpdate {
  bool progressed = false;                        ///< another process has made progress
  AbortReason abort_reason = AbortReason::kNone;  ///< why another process aborted the step
};

/// Runs one Program, step after step. It owns the threads, streams and connections that the steps
/// use.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Runs every instruction of the Program once. Returns the results by rank, when all ranks have
  /// finished or aborted.
  virtual std::vector<RankResult> run_step() = 0;
};

/// Parameters of every backend.
struct BackendRequest {
  Work work;
  Injections injections;
  PayloadCodec payload_codec = {};
  bool high_priority = false;  ///< the work only waits, so its lanes may have real-time priority
  Limits limits = {};          ///< all ranks abort where one is reached
  std::optional<ReadyPolicy> policy = {};  ///< nullopt: ranks keep their order
};

/// An entry of the registry of backends. Those that enqueue work on devices have one in the
/// registry of exec/gpu/host/device_backend.h as well.
struct BackendDef {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;  ///< one line for `list backends`
  /// Makes a backend whose work runs on the host; empty for those that enqueue it on devices. The
  /// Program is not copied. Throws Error.
  std::function<std::unique_ptr<Backend>(BackendRequest request, const Program& program)> make = {};
  /// Connects to the other processes. Empty for backends that run all ranks in one process. Throws
  /// Error.
  std::function<std::unique_ptr<Processes>(const Limits& limits)> join = {};
};

using BackendRegistrar = Registrar<BackendDef>;

/// Finds a backend by name. Throws Error with the nearest known name.
const BackendDef& find_backend(std::string_view name);

}  // namespace bubblescope::exec
