// The weights of all stages on their devices, with their gradients and the optimizer.
#pragma once

#include <string>
#include <vector>

#include "exec/gpu/host/gpu_stage.h"
#include "exec/gpu/host/version_ring.h"
#include "exec/training/homes.h"
#include "exec/training/training.h"

namespace bubblescope {

class GpuWeights {
 public:
  /// The initial weights of exec/training. Nothing is copied. Throws Error where a device is full.
  GpuWeights(const GpuMachine& machine, const Schedule& schedule, const TrainingOptions& options,
             BubblescopeNumber number);

  const Homes& homes() const { return homes_; }
  /// The first of its versions: all have the same masters and gradients. Those of other processes
  /// have no weights.
  const GpuStage& stage(Home home) const { return at_home_[home].versions[0]; }

  /// The version that a micro-batch uses. Throws Error where it is not there yet, or no more.
  const GpuStage& read(const Op& reader) const;

  /// Whether a micro-batch's last weight gradient is followed by an update.
  bool writes(const Op& op) const;

  /// Of one home within a step, which ends when the stream comes to it: makes the next version
  /// where training does not flush.
  void update(Home home, void* stream);

  // While nothing runs; each returns when it is done:
  /// The newest version becomes version 0, and the gradients begin anew.
  void begin_step();
  void update();

  /// Of the stages of the model: the first of each. Empty where they are in other processes.
  std::vector<Stage> download_weights() const;
  /// Of their last updates.
  std::vector<std::vector<Matrix>> download_gradients() const;

 private:
  struct AtHome {
    VersionPlan plan;
    std::int32_t newest = 0;  ///< this step's version
    float scale = 1;          ///< of gradients, before an update
    /// [version mod as many]: the same masters and gradients, other values to multiply with.
    std::vector<GpuStage> versions;
    std::vector<std::string> names;
    std::vector<GpuMatrix> mean;  ///< Adam's; else empty
    std::vector<GpuMatrix> square;
    GpuMatrix steps;                    ///< Adam's, as kAdamStep has them
    std::vector<GpuMatrix> last_grads;  ///< where others follow the last update; else empty
  };

  void add_weights(AtHome& made, std::int32_t device, const Stage& initial);
  GpuMatrix place(std::int32_t device, const Matrix& shape, BubblescopeNumber number);
  GpuMatrix place_zeros(std::int32_t device, const Matrix& shape);
  void upload(const GpuWeight& weight, const Matrix& values);
  Matrix download(const GpuMatrix& matrix) const;
  void scale(const AtHome& at_home, void* stream);
  void count_step(const GpuMatrix& steps, void* stream);
  void update_one(const AtHome& at_home, const GpuWeight& weight, std::size_t at, void* stream);
  void restart_gradient(const AtHome& at_home, std::size_t at, void* stream);
  void clear(const GpuMatrix& matrix, void* stream);
  std::int32_t device_of(Home home) const;
  void await() const;

  const GpuMachine& machine_;
  const TrainingOptions& options_;
  BubblescopeNumber number_;
  Homes homes_;
  std::vector<std::vector<WeightUse>> uses_;  ///< [stage][microbatch]
  std::vector<AtHome> at_home_;
  std::vector<GpuHandle> memory_;
  std::vector<GpuHandle> streams_;  ///< [device]
};

}  // namespace bubblescope
