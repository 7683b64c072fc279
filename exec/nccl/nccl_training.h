// Training in several processes: what goes over NCCL, and what they tell each other at the end.
#pragma once

#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_training.h"
#include "exec/nccl/nccl_links.h"

namespace bubblescope::exec {

class NcclTraining {
 public:
  /// Nothing is copied. Throws Error for what cannot be trained, and where the device is full.
  NcclTraining(const GpuMachine& machine, const JobRequest& job, const JobPart& part,
               StepProtocol& protocol);

  /// The wires are made when all processes have come this far.
  void connect(NcclLinks& nccl_links) { nccl_links_ = &nccl_links; }

  void begin_step() { training_.begin_step(); }
  /// Enqueues what nothing is sent for.
  void enqueue(InstructionId id, void* stream);
  /// Once for every transfer, in their order.
  std::vector<NcclRanks::Buffer> find(const PlannedTransfer& transfer);

  // While nothing runs; all processes call them in the same order:
  void finish_step() { training_.finish_step(); }
  TrainingResult result() const;
  std::vector<Bytes> peak_bytes() const;
  /// Those of all ranks, each once.
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
  std::vector<bool> reduced_inside_;  ///< [stage]: the Program says when
  GpuTraining training_;
};

}  // namespace bubblescope::exec
