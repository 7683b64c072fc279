// The weights of all stages on their devices, with their gradients and the optimizer.
#pragma once

#include <vector>

#include "exec/gpu/gpu_stage.h"
#include "exec/gpu/version_ring.h"
#include "exec/training/training.h"

namespace bubblescope {

class GpuWeights {
 public:
  /// The initial weights of exec/training. Nothing is copied. Throws Error where a device is full.
  GpuWeights(const GpuMachine& machine, const Schedule& schedule, const TrainingOptions& options,
             BubblescopeNumber number);

  const GpuStage& stage(std::int32_t stage) const {
    return versions_[static_cast<std::size_t>(stage)][0];
  }

  /// The version that a micro-batch uses. Throws Error where it is not there yet, or no more.
  const GpuStage& read(const Op& reader) const;

  /// Behind a micro-batch's last weight gradient: makes the next version where its backward does.
  void end_backward(const Op& op, void* stream);

  // While nothing runs; each returns when it is done:
  /// The newest version becomes version 0, and the gradients begin anew.
  void begin_step();
  /// Replicas of a stage get the sum of their gradients, where both are in this process.
  void sum_replicas();
  void update();
  /// Of one stage within a step, which ends when the stream comes to it.
  void update(std::int32_t stage, void* stream);

  /// Of the stages of the model: the first pipeline's. Empty where they are in other processes.
  std::vector<Stage> download_weights() const;
  std::vector<std::vector<Matrix>> download_gradients() const;

 private:
  void add_stage(std::int32_t stage);
  void add_weights(std::int32_t stage, const Stage& made);
  GpuMatrix place(std::int32_t device, const Matrix& shape, BubblescopeNumber number);
  void upload(const GpuWeight& weight, const Matrix& values);
  Matrix download(const GpuMatrix& matrix) const;
  void update(const GpuWeight& weight, std::size_t stage, std::size_t at, void* stream);
  void clear(const GpuMatrix& matrix, void* stream);
  bool runs(std::size_t stage) const;
  std::int32_t device_of(std::size_t stage) const;
  void await() const;

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const TrainingOptions& options_;
  BubblescopeNumber number_;
  std::vector<std::vector<WeightUse>> uses_;  ///< [stage][microbatch]
  std::vector<VersionPlan> plans_;            ///< [stage]
  std::vector<std::int32_t> newest_;          ///< [stage]: this step's version
  /// [stage][version mod as many]: the same masters and gradients, other values to multiply with.
  std::vector<std::vector<GpuStage>> versions_;
  std::vector<std::vector<std::string>> names_;  ///< [stage]
  std::vector<std::vector<GpuMatrix>> mean_;     ///< [stage]: Adam's; else empty
  std::vector<std::vector<GpuMatrix>> square_;   ///< [stage]
  std::vector<GpuHandle> memory_;
  std::vector<GpuHandle> streams_;     ///< [device]
  std::vector<std::int32_t> updates_;  ///< [stage]: how many there were
};

}  // namespace bubblescope
