// Training on GPUs: every op of a schedule enqueues its part of a transformer, as exec/training
// does on the host. Weights, gradients and activations stay on the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "exec/gpu/host/gpu_data.h"
#include "exec/gpu/host/gpu_evictions.h"
#include "exec/gpu/host/gpu_lanes.h"
#include "exec/gpu/host/gpu_mailbox.h"
#include "exec/gpu/host/gpu_ops.h"
#include "exec/gpu/host/gpu_reductions.h"
#include "exec/gpu/host/job.h"
#include "exec/gpu/host/memory_tracker.h"
#include "exec/training/program_updates.h"
#include "exec/training/resumable_training.h"

namespace bubblescope::exec {

/// The sums that processes which train together exchange at the end of a step. The functions are
/// empty if one process has all ranks.
struct GpuExchange {
  std::function<double(double)> sum_losses;
  std::function<void()> sum_replicas;  ///< of other processes, after steps without sums
  std::int32_t replica = 0;            ///< index of this replica of the pipeline;
  std::int32_t replicas = 1;           ///< each replica has its own micro-batches
};

class GpuTraining {
 public:
  /// Allocates all memory except activations. Copies only the options. Throws Error for a job that
  /// cannot be trained, and if a device is out of memory.
  GpuTraining(const GpuMachine& machine, const JobRequest& job, GpuExchange exchange = {});

  /// Uploads the step's tokens and clears the gradients; call only while nothing runs.
  void begin_step();

  GpuMessage find_message(const Op& op) const { return mailbox_.find(op); }
  const GpuWeights& weights() const { return weights_; }

  /// Enqueues an instruction on a stream.
  void enqueue(InstructionId id, void* stream);

  /// Replaces enqueue() for a copy to or from an offload target in another process, on either side:
  /// the memory to send or to fill, in the same order on both sides.
  GpuBuffers find_copy_buffers(InstructionId id);

  /// Reads the losses, sums the gradients of replicas and updates the weights; call only while
  /// nothing runs. From `times` the memory held at once is computed.
  void finish_step(const MemoryTracker::Times& times = {});

  /// Downloads losses, gradients and weights.
  TrainingResult result() const;

  /// The most bytes of activations that each rank has held between ops.
  const std::vector<Bytes>& peak_bytes() const { return held_.peaks(); }

  std::vector<PoolUse> pools() const;  ///< of each rank of this process
  std::vector<EpilogueUse> epilogues() const;

  /// The GpuTraining must outlive it.
  ResumableTraining resumable();

 private:
  Blob save() const;
  void restore(std::span<const std::byte> bytes);
  void reduce(const Instruction& reduction, void* stream);
  ActivationPool& pool_of(InstructionId id) {
    return ops_.layers()[static_cast<std::size_t>(program_.instructions[id].rank)]->stream.pool();
  }
  Bytes begin_pool_use(InstructionId id);
  void end_pool_use(InstructionId id, Bytes before);
  GpuBuffers acquire_offloaded(InstructionId id, const GpuBuffers& sizes);
  GpuBuffers release_offloaded(InstructionId id);
  StageReplica replica_of(const Instruction& instruction) const {
    return weights_.stage_replicas().find(instruction.op.stage, instruction.rank);
  }

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const Program& program_;
  TrainingOptions options_;
  GpuExchange exchange_;
  std::optional<HappensBefore> order_;  ///< if a rank's memory is used on several streams
  GpuWeights weights_;
  GpuReductions reductions_;
  GpuMailbox mailbox_;
  GpuData data_;
  GpuEvictions evictions_;
  ProgramUpdates in_program_;  ///< reductions and updates that the Program does itself
  MemoryTracker held_;         ///< measured between ops
  MemoryTracker pools_;        ///< measured also during ops
  GpuOps ops_;
  std::vector<double> step_losses_;
  TrainingIdentity computed_by_;
};

}  // namespace bubblescope::exec
