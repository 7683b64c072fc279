// The walk of one measurement: a Program -> a backend -> Timeline -> BubbleReport.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/device_state.h"
#include "exec/gpu/host/job.h"
#include "exec/runtime/execute.h"
#include "exec/runtime/heartbeat.h"
#include "exec/training/verification.h"
#include "tools/commands/checkpoints.h"
#include "tools/flags/run_options.h"
#include "tools/inputs/predict.h"
#include "tools/interrupt.h"

namespace bubblescope::tools {

/// The orders that ranks chose under a policy.
struct ChosenOrders {
  std::string policy;  ///< "ready:backward"
  std::int64_t ops = 0;
  std::int64_t moved = 0;       ///< ops that ran at another place of their rank's order
  std::int32_t steps = 0;       ///< that were measured
  std::int32_t same_steps = 0;  ///< those in which ranks chose the order that is shown
};

/// The measurement of one schedule.
struct Measurement {
  TimedStep step;  ///< the measured step of median length, or the one that failed
  std::string backend = {};
  std::string work = {};
  std::string device = {};
  std::int32_t ranks_per_device = 1;
  std::vector<Timeline> steps = {};   ///< every measured step
  std::vector<Nanos> makespans = {};  ///< of every measured step
  std::size_t first_block = 0;  ///< how many of them came before a pause; 0: they are one block
  std::vector<Bytes> peak_bytes = {};     ///< of activations, per rank; empty: none were held
  std::vector<exec::PoolUse> pools = {};  ///< per rank; empty where activations have no pools
  std::vector<exec::EpilogueUse> epilogues = {};    ///< as requested, where the library has them
  exec::MonitoredDevices devices = {};              ///< clocks, power and temperature
  std::optional<exec::StepActivity> activity = {};  ///< of the step that is shown, where asked for
  std::optional<exec::Verification> verification =
      {};                             ///< of what was trained; empty without training
  exec::TrainingResult trained = {};  ///< on devices only if it was verified or is to be kept
  std::optional<CheckpointReport> checkpoints = {};
  std::optional<ChosenOrders> chosen = {};  ///< under a policy
  std::optional<exec::Breakdown> breakdown = {};
};

/// The inputs and flags of a run, and the processes of its backend. Every process takes the same
/// steps; only the coordinator prints and writes.
struct RunContext {
  const PredictInputs& inputs;
  const RunOptions& run;
  const exec::Processes& processes;
};

/// The connection to the other processes of the backend, if any. While it lives, the executor
/// handles Ctrl-C and SIGTERM by stopping every rank; a second signal ends the program.
class BackendSession {
 public:
  explicit BackendSession(const RunOptions& run);
  BackendSession(const BackendSession&) = delete;
  BackendSession& operator=(const BackendSession&) = delete;

  const exec::Processes& processes() const { return *processes_; }

  /// Returns whether this process is the one that reports. It sends heartbeats from now on; the
  /// others first wait until it has ended. Throws Error where it is lost.
  bool start_reporting_or_wait();

 private:
  InterruptCatcher catcher_;  ///< outlives the processes, which read its note
  std::unique_ptr<exec::Processes> processes_;
  std::optional<exec::Heartbeat> heartbeat_;
};

/// Runs a legal schedule's program on the selected backend. Ctrl-C counts as a breakdown.
Measurement measure(const ValidSchedule& schedule, const Program& program,
                    const RunContext& context);

/// Returns "; omit ..." if a step could not become a graph, else nothing.
std::string advise_without_graph(const exec::Job& job);

/// How ops of a kind of work pass their time.
exec::WaitMode wait_mode_of(WorkKind work);

/// The request for a backend that runs this work; Ctrl-C interrupts it.
exec::BackendRequest make_backend_request(exec::Work work, const RunContext& context);

/// Starts a program on a backend that enqueues work on devices. Throws Error.
exec::Job start_job(const ValidSchedule& schedule, const Program& program, const CostModel& costs,
                    const RunContext& context);

/// Measured steps, and the state of the devices in each.
struct TimedSteps {
  std::vector<Timeline> steps;
  exec::MonitoredDevices devices;
};

/// Times the steps of a Program with a schedule's ops, which need not be the schedule's own, on a
/// backend that enqueues work on devices. Weights are not updated. Throws Error where a run fails.
TimedSteps time_program(const ValidSchedule& schedule, const Program& program,
                        const RunContext& context);

}  // namespace bubblescope::tools
