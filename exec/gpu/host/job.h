// The job of a Program: to pass the time that its costs say, or to train. Backends on the host get
// a Work to call; backends that enqueue work on devices create it from the job.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/device_options.h"
#include "exec/gpu/host/epilogue.h"
#include "exec/gpu/host/gpu_activity.h"
#include "exec/runtime/backend.h"
#include "exec/training/resumable_training.h"
#include "exec/training/training.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::exec {

/// Copies only the durations.
struct JobRequest {
  const ValidSchedule& schedule;
  const Program& program;
  const TrainingOptions* training = nullptr;  ///< null: the durations are played
  std::vector<Nanos> durations;               ///< [instruction]; used only without training
  WaitMode wait_mode = WaitMode::kSleep;
  DeviceOptions device;
};

/// The use of a rank's activation pool.
struct PoolUse {
  Bytes peak = 0;      ///< the most bytes in use at once, including those within ops
  Bytes reserved = 0;  ///< bytes allocated on the device
};

/// A backend with its work, and access to the results. Without training, the functions and the
/// training are empty.
struct Job {
  std::unique_ptr<Backend> backend;
  std::string device;  ///< description of the device
  /// Whether the step that broke down could not become a graph. Empty where steps never do.
  std::function<bool()> failed_as_graph;
  std::vector<std::string> buses;     ///< PCI addresses of the devices in this process, if any
  std::int32_t ranks_per_device = 1;  ///< neighbouring ranks share a device
  std::int32_t replicas = 1;          ///< of the pipeline, trained together, each on its own data
  std::function<void()> after_step;   ///< the optimizer step; call while nothing runs
  std::function<TrainingResult()> result;
  std::optional<ResumableTraining> resumable;
  std::function<std::vector<Bytes>()> peak_bytes;       ///< [rank]: peak of activations
  std::function<std::vector<PoolUse>()> pools;          ///< [rank]; may be empty
  std::function<std::vector<EpilogueUse>()> epilogues;  ///< GEMMs tried to fuse; may be empty
  /// The activities of a step, counted from 0 including warm-up; call once per step. Empty if they
  /// are not recorded.
  std::function<StepActivity(std::int64_t step, const Timeline& timeline)> activity;
};

}  // namespace bubblescope::exec
