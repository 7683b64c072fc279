// Training in several processes: the collectives that they enqueue, and the results that they
// gather at the end.
#pragma once

#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_training.h"
#include "exec/nccl/nccl_links.h"

namespace bubblescope::exec {

class NcclTraining {
 public:
  /// The arguments are not copied. Throws Error if the schedule cannot be trained, or the device's
  /// memory is too small.
  NcclTraining(const GpuMachine& machine, const JobRequest& job, const JobPart& part,
               StepProtocol& protocol);

  /// Sets the links, which are made after all processes have constructed this.
  void connect(NcclLinks& nccl_links) { nccl_links_ = &nccl_links; }

  void begin_step() { training_.begin_step(); }
  /// Enqueues an instruction that has no transfers.
  void enqueue(InstructionId id, void* stream);
  /// The buffers of a transfer. Call once for every transfer, in their order.
  std::vector<NcclRanks::Buffer> find(const PlannedTransfer& transfer);

  // All processes must call these in the same order, while nothing runs.
  void finish_step() { training_.finish_step(); }
  TrainingResult result() const;
  std::vector<Bytes> peak_bytes() const;
  ResumableTraining resumable() { return training_.resumable(); }
  /// Returns the epilogues that any rank used, each once.
  std::vector<EpilogueUse> epilogues() const;

 private:
  GpuExchange make_exchange(const JobPart& part);
  double sum_losses(double part) const;
  void sum_replicas() const;
  void sum(std::int32_t stage, void* stream) const;
  void gather(std::int32_t stage, void* stream) const;
  void drop(std::int32_t stage, void* stream) const;
  void merge(std::vector<Matrix>& known, std::vector<Matrix> received,
             std::optional<std::int32_t> copy) const;
  const std::vector<GpuWeight>& weights_of(std::int32_t stage) const;

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const Program& program_;
  StepProtocol& protocol_;
  JobPart part_;
  NcclLinks* nccl_links_ = nullptr;
  std::vector<bool> reduced_inside_;  ///< [stage]: the Program has its REDUCE_GRAD
  GpuTraining training_;
};

}  // namespace bubblescope::exec
