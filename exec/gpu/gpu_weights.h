// The weights of all stages on their devices, with their gradients and the optimizer.
#pragma once

#include <vector>

#include "exec/gpu/gpu_stage.h"
#include "exec/training/training.h"

namespace bubblescope {

class GpuWeights {
 public:
  /// The initial weights of exec/training. Nothing is copied. Throws Error where a device is full.
  GpuWeights(const GpuMachine& machine, const Schedule& schedule, const TrainingOptions& options,
             BubblescopeNumber number);

  const GpuStage& stage(std::int32_t stage) const {
    return stages_[static_cast<std::size_t>(stage)];
  }

  // While nothing runs; each returns when it is done:
  void clear_gradients();
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
  GpuMatrix place(std::int32_t device, const Matrix& shape, BubblescopeNumber number);
  void upload(const GpuWeight& weight, const Matrix& values);
  Matrix download(const GpuMatrix& matrix) const;
  void update(std::size_t stage, std::size_t at, void* stream);
  bool runs(std::size_t stage) const;
  std::int32_t device_of(std::size_t stage) const;
  void await() const;

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const TrainingOptions& options_;
  BubblescopeNumber number_;
  std::vector<GpuStage> stages_;
  std::vector<std::vector<std::string>> names_;  ///< [stage]
  std::vector<std::vector<GpuMatrix>> mean_;     ///< [stage]: Adam's; else empty
  std::vector<std::vector<GpuMatrix>> square_;   ///< [stage]
  std::vector<GpuHandle> memory_;
  std::vector<GpuHandle> streams_;     ///< [device]
  std::vector<std::int32_t> updates_;  ///< [stage]: how many there were
};

}  // namespace bubblescope
