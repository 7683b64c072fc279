// The weights of all stages on their devices, with gradients and optimizer state.
#pragma once

#include <string>
#include <vector>

#include "exec/gpu/host/device_slabs.h"
#include "exec/gpu/host/gpu_stage.h"
#include "exec/gpu/host/version_plan.h"
#include "exec/training/stage_checkpoint.h"
#include "exec/training/stage_replicas.h"
#include "exec/training/training.h"

namespace bubblescope::exec {

class GpuWeights {
 public:
  /// Draws the initial weights of exec/training on the devices, bit for bit. Nothing is copied.
  /// Throws Error if a device is out of memory.
  GpuWeights(const GpuMachine& machine, const Schedule& schedule, const TrainingOptions& options,
             BubblescopeDtype dtype);

  const StageReplicas& stage_replicas() const { return stage_replicas_; }
  /// One version of the weights; all versions share the masters and gradients. Stages of other
  /// processes have no weights.
  const GpuStage& stage(StageReplica replica) const {
    return replica_weights_[replica].versions[0];
  }

  /// The version that a micro-batch uses. Throws Error if it does not exist yet, or no longer.
  const GpuStage& read(const Op& reader) const;

  /// Whether an update follows the last weight gradient of the micro-batch.
  bool writes(const Op& op) const;

  /// Updates one replica within a step, and makes the next version in schedules without flushes.
  /// Only enqueues.
  void update(StageReplica replica, void* stream);

  // Call these only while nothing runs; each waits until it is done:
  /// Renumbers the newest version as version 0 and resets the gradients.
  void begin_step();
  void update();

  /// Returns the weights of each stage of the model, from its first replica; empty if that is in
  /// another process.
  std::vector<Stage> download_weights() const;
  /// The gradients of each stage's last update.
  std::vector<std::vector<Matrix>> download_gradients() const;

  // The following functions save, restore and measure a replica of this process between two steps.
  StageCheckpoint save(StageReplica replica, bool keeps_last_gradients) const;
  void restore(StageReplica replica, const StageCheckpoint& stage);
  /// Sets only the sizes.
  StageCheckpointShape checkpoint_shape(StageReplica replica) const;

 private:
  struct ReplicaWeights {
    VersionPlan plan;
    std::int32_t newest = 0;  ///< in this step
    float scale = 1;          ///< of gradients, applied before an update
    /// [version modulo size]: versions share masters and gradients and differ in the values that
    /// GEMMs read.
    std::vector<GpuStage> versions;
    std::vector<std::string> names;
    std::vector<GpuMatrix> mean;  ///< for Adam; else empty
    std::vector<GpuMatrix> square;
    GpuMatrix steps;                    ///< for Adam, see AdamStepArguments
    std::vector<GpuMatrix> last_grads;  ///< only if more gradients follow the last update
  };

  void add_weights(ReplicaWeights& created, std::int32_t device, const StagePlan& plan);
  void add_weight(ReplicaWeights& created, std::int32_t device, const WeightOutline& outline);
  void draw(const ReplicaWeights& created, std::int32_t device, const StagePlan& plan);
  Matrix download(const GpuMatrix& matrix) const;
  std::vector<Matrix> download_all(const std::vector<GpuMatrix>& matrices) const;
  std::vector<Matrix> download_gradients(const ReplicaWeights& held) const;
  void upload(const GpuMatrix& to, const Matrix& from) const;
  void restore_optimizer(const ReplicaWeights& held, const OptimizerState& state) const;
  void scale(const ReplicaWeights& replica_weights, void* stream);
  void count_step(const GpuMatrix& steps, void* stream);
  void update_one(const ReplicaWeights& replica_weights, const GpuWeight& weight, std::size_t at,
                  void* stream);
  void restart_gradient(const ReplicaWeights& replica_weights, std::size_t at, void* stream);
  void launch(const GpuMatrix& shape, const KernelArguments& arguments, void* stream) const;
  void clear(const GpuMatrix& matrix, void* stream);
  std::int32_t device_of(StageReplica replica) const;

  const GpuMachine& machine_;
  const TrainingOptions& options_;
  BubblescopeDtype dtype_;
  StageReplicas stage_replicas_;
  std::vector<std::vector<WeightUse>> uses_;  ///< [stage][microbatch]
  std::vector<ReplicaWeights> replica_weights_;
  DeviceSlabs memory_;
  std::vector<GpuHandle> streams_;  ///< [device]
};

}  // namespace bubblescope::exec
