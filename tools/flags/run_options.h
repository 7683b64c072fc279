// Flags of the commands that execute schedules.
#pragma once

#include <cstdint>
#include <string>

#include "exec/gpu/host/device_options.h"
#include "exec/training/training.h"
#include "sim/ir/units.h"
#include "tools/flags/checkpoint_options.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// The work of every op.
enum class WorkKind : std::uint8_t {
  kSleep,        ///< sleeps for its cost, on no core
  kSpin,         ///< keeps a core busy for its cost
  kTransformer,  ///< trains
};

struct RunOptions {
  std::string backend;  ///< empty: nothing is run
  WorkKind work = WorkKind::kSleep;
  std::int32_t warmup = 1;
  Nanos warmup_time = 0;  ///< compare and calibrate warm up at least this long
  std::int32_t steps = 3;
  Nanos timeout = 30'000'000'000;
  exec::TrainingOptions training;
  bool verification = true;       ///< train again on one thread, and compare
  bool keeps_weights = false;     ///< what was trained is needed even if it is not verified
  CheckpointOptions checkpoints;  ///< only `run` has flags for them
  exec::DeviceOptions device;
};

/// For commands that compare times: chooses what flags leave open so that a measurement can be
/// believed. A transformer has ops of several milliseconds, the warm-up lasts two seconds, and more
/// steps are measured.
void choose_measured_work(const CommandFlags& app, RunOptions& options);

/// The largest size of a transformer that trains.
inline constexpr std::int32_t kMaxTrainedSize = 1 << 20;

/// The flags of a run that a command adds.
struct RunFlags {
  /// --seq-length, --micro-batch-size and --precision; false where a model shares them.
  bool has_sizes = true;
};

/// --backend, --work, --steps, --warmup, --timeout and the flags of the transformer.
void add_run_options(CommandFlags& app, RunOptions& options, RunFlags flags = {});

/// Sets the dtype of the transformer, on the host and on devices.
void set_precision(RunOptions& run, exec::Precision precision);

/// Warns about flags that only training, or only GPUs, use, and about cost flags that training
/// ignores.
void warn_of_unused_run_options(const CommandFlags& app, const RunOptions& options,
                                bool costs_given);

/// Returns "sleep", "spin" or "transformer".
std::string to_string(WorkKind work);

}  // namespace bubblescope::tools
