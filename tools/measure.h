// The walk of one measurement: a Program -> a backend -> Timeline -> BubbleReport.
#pragma once

#include <signal.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/device_state.h"
#include "exec/gpu/host/job.h"
#include "exec/runtime/execute.h"
#include "exec/runtime/heartbeat.h"
#include "exec/training/proof.h"
#include "tools/predict.h"
#include "tools/run_options.h"

namespace bubblescope {

/// One schedule, run.
struct Measurement {
  Step step;  ///< the measured step of median length, or the one that broke down
  std::string backend = {};
  std::string work = {};
  std::string device = {};
  std::int32_t ranks_per_device = 1;
  std::vector<Timeline> steps = {};         ///< every measured step
  std::vector<Nanos> makespans = {};        ///< of every measured step
  std::vector<Bytes> peak_bytes = {};       ///< of activations, per rank; empty: nothing was held
  std::vector<PoolUse> pools = {};          ///< per rank; empty where activations have no pools
  std::vector<EpilogueUse> epilogues = {};  ///< that were asked for, as far as the library has them
  WatchedDevices devices = {};              ///< clocks, power and temperature
  std::optional<StepActivity> activity = {};  ///< of the step that is shown, where asked for
  std::optional<Proof> proof = {};            ///< of what was trained; empty where nothing was
  TrainingResult trained = {};
  std::optional<Breakdown> breakdown = {};
};

/// What runs: flags, and the processes that the backend runs in. Where there are several, each
/// walks the same way; only the one that speaks() prints and writes.
struct Bench {
  const PredictOptions& options;
  const RunOptions& run;
  const Processes& processes;
};

/// The link to the other processes of the backend's kind, or none. While they live, Ctrl-C and
/// SIGTERM are heard by the executor, which stops every rank; the second one ends the program.
class Session {
 public:
  explicit Session(const RunOptions& run);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Processes& processes() const { return *processes_; }

  /// Whether this process is the one that reports. It gives heartbeats from now on; the others wait
  /// here until it is done. Throws Error where it is lost.
  bool reports();

 private:
  std::array<struct sigaction, 2> before_;
  std::unique_ptr<Processes> processes_;
  std::optional<Heartbeat> heartbeat_;
};

/// Runs a legal schedule's program on the backend of the options. Ctrl-C is a breakdown.
Measurement measure(const ValidSchedule& schedule, const Program& program, const Bench& bench);

/// The measured steps of a Program that has a schedule's ops, but need not be its own: on a backend
/// that enqueues work on devices. Nothing is learned in them. Throws Error where it breaks down.
std::vector<Timeline> time_program(const ValidSchedule& schedule, const Program& program,
                                   const Bench& bench);

/// `"work":...,"device":...,"gradients_match":...,"makespans_ns":[...]`, to go into a json report.
std::string json_members(const Measurement& measurement);

/// A report's json with further members at its end.
std::string with_members(const std::string& report_json, const std::string& members);

}  // namespace bubblescope
