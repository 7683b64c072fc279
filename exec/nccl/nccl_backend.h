// The backend of one process per GPU. It enqueues the RankPlan of this process's rank on its
// device, and gathers what all ranks did.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/gpu/host/gpu_step.h"
#include "exec/nccl/nccl_training.h"

namespace bubblescope::exec {

class NcclBackend : public Backend {
 public:
  /// Only the request is copied. Throws Error.
  NcclBackend(const NcclPlace& place, const JobRequest& job, BackendRequest request);
  NcclBackend(const NcclBackend&) = delete;
  NcclBackend& operator=(const NcclBackend&) = delete;

  std::string describe() const;
  /// Returns the PCI bus id of this process's device.
  std::vector<std::string> buses() const { return machine_.buses(); }
  std::int32_t replicas() const { return part_.replicas; }
  NcclTraining* training() { return training_ ? &*training_ : nullptr; }
  StepProtocol& protocol() { return protocol_; }

  std::vector<RankResult> run_step() override;

 private:
  GpuStepWork make_work(const JobRequest& job);
  void enqueue(InstructionId id, const GpuWork& work, const FindBuffers& find, void* stream);
  void await_begin();
  PeerUpdate poll_peers(std::size_t ended);
  std::vector<RankPart> fold(std::vector<RankPart> parts) const;
  bool is_own(InstructionId planned) const;
  RankPart translate(RankResult result) const;
  BlockedAt translate(BlockedAt blocked) const;

  NcclPlace place_;
  const Program& program_;
  JobPart part_;
  BackendRequest request_;
  RankPlan plan_;
  GpuMachine machine_;
  StepProtocol protocol_;
  std::optional<NcclTraining> training_;
  std::optional<NcclLinks> nccl_links_;
  std::optional<GpuStep> step_;
  Nanos clock_error_ = 0;  ///< the largest of all processes, when the job began
  Nanos checked_at_ = 0;
};

}  // namespace bubblescope::exec
