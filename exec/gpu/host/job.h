// What a Program is run for: ops that last as long as their costs say, or that train. Backends on
// the host are given a Work to call; one whose work is enqueued on devices makes it from this.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/host/epilogue.h"
#include "exec/gpu/host/gpu_activity.h"
#include "exec/gpu/host/place_ranks.h"
#include "exec/gpu/host/precision.h"
#include "exec/runtime/backend.h"
#include "exec/training/training.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

struct DeviceOptions {
  Share share = Share::kGreen;
  bool graph = false;  ///< each step after the second is one launch
  Precision precision = Precision::kFloat32;
  Attention attention = Attention::kSoftmax;
  std::optional<Epilogue> epilogue = {};  ///< empty: fused in bfloat16, separate in float32
  bool activity = false;                  ///< a profiler records what devices really do
};

/// Nothing is copied but the durations.
struct JobRequest {
  const ValidSchedule& schedule;
  const Program& program;
  const TrainingOptions* training = nullptr;  ///< null: the durations are played
  std::vector<Nanos> durations;               ///< per instruction, where nothing is trained
  Pass pass = Pass::kSleep;
  DeviceOptions device;
};

/// What a rank's pool of activations came to.
struct PoolUse {
  Bytes peak = 0;      ///< the most that was taken at a time, while ops run too
  Bytes reserved = 0;  ///< that the device gave for it
};

/// A backend that has its work, and what this leaves behind. Where nothing is trained, the
/// functions are empty.
struct Job {
  std::unique_ptr<Backend> backend;
  std::string device;                 ///< what it runs on
  std::vector<std::string> buses;     ///< addresses of the devices here, where they have any
  std::int32_t ranks_per_device = 1;  ///< neighbouring ranks share one
  std::int32_t copies = 1;            ///< of the pipeline, that train together: each has as many
                                      ///< micro-batches of its own as the schedule says
  std::function<void()> after_step;   ///< the optimizer: while nothing runs
  std::function<TrainingResult()> result;
  std::function<std::vector<Bytes>()> peak_bytes;       ///< of activations, per rank
  std::function<std::vector<PoolUse>()> pools;          ///< per rank; empty where there are none
  std::function<std::vector<EpilogueUse>()> epilogues;  ///< that were asked for; may be empty
  /// Of a step that has run, from 0, warm-up steps among them; once. Empty where none was asked
  /// for.
  std::function<StepActivity(std::int64_t step, const Timeline& timeline)> activity;
};

/// What a message of a size takes from one rank to its neighbour, while nothing else runs.
struct MessageTime {
  Bytes bytes = 0;
  Nanos nanos = 0;
};

/// What each op of a training adds to its rank's memory on a device, in bytes, per stage.
MemoryModel device_training_memory(const Schedule& schedule, const TrainingOptions& options,
                                   const DeviceOptions& device);

/// A step, run or predicted.
struct TimedProgram {
  const ValidSchedule& schedule;
  const Program& program;
  const Timeline& timeline;
};

/// PoolUse::peak of every rank in such a step.
std::vector<Bytes> predict_pool_bytes(const TimedProgram& step, const TrainingOptions& options,
                                      const DeviceOptions& device);

}  // namespace bubblescope
