// Training on GPUs: every op of a schedule enqueues its part of a transformer, as exec/training
// does on the host. Weights, gradients and activations stay on the devices.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_contexts.h"
#include "exec/gpu/host/gpu_data.h"
#include "exec/gpu/host/gpu_evictions.h"
#include "exec/gpu/host/gpu_lanes.h"
#include "exec/gpu/host/gpu_mailbox.h"
#include "exec/gpu/host/gpu_microbatch.h"
#include "exec/gpu/host/gpu_reductions.h"
#include "exec/gpu/host/job.h"
#include "exec/gpu/host/memory_tracker.h"
#include "exec/training/program_updates.h"

namespace bubblescope::exec {

/// The sums that processes which train together exchange at the end of a step. The functions are
/// empty if one process has all ranks.
struct GpuExchange {
  std::function<double(double)> sum_losses;
  std::function<void()> sum_replicas;  ///< of other processes, after steps without sums
  std::int32_t copy = 0;               ///< index of this copy of the pipeline;
  std::int32_t copies = 1;             ///< each copy has its own micro-batches
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

 private:
  void run(InstructionId id, void* stream);
  void reduce(const Instruction& reduction, void* stream);
  void compute_forward(const Op& op);
  void recompute_forward(const Op& op);
  void compute_input_grad(const Op& op);
  void compute_weight_grad(const Op& op, void* stream);
  void record_pool_use(InstructionId id, const std::function<void()>& run);
  GpuBuffers release_evicted(const Instruction& evict);
  GpuBuffers acquire_loaded(const Instruction& load);
  GpuBuffers acquire_offloaded(InstructionId id, const GpuBuffers& sizes);
  GpuBuffers release_offloaded(InstructionId id);
  void set_held(const Op& op, Bytes bytes);
  std::size_t rank_of(const Op& op) const;
  GpuLayers& layers_of(const Op& op) { return *layers_[rank_of(op)]; }
  GpuMicrobatch& state_of(const Op& op);
  GpuMatrix input_of(const Op& op) const;
  const GpuSliceContext* context_of(const Op& op) {
    return contexts_.find(op, layers_of(op), weights_.read(op));
  }
  Bytes context_bytes(const Op& op) const;
  StageReplica replica_of(const Instruction& instruction) const {
    return weights_.stage_replicas().find(instruction.op.stage, instruction.rank);
  }

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const Program& program_;
  TrainingOptions options_;
  GpuExchange exchange_;
  BubblescopeDtype dtype_;
  std::vector<std::optional<GpuLayers>> layers_;  ///< [rank]; only those of this process
  GpuWeights weights_;
  GpuReductions reductions_;
  GpuMailbox mailbox_;
  GpuData data_;
  GpuEvictions evictions_;
  std::optional<HappensBefore> order_;  ///< if a rank's memory is used on several streams
  std::vector<GpuMicrobatch> states_;   ///< [stage * forwards + Schedule::forward_index]
  GpuContexts contexts_;
  MemoryTracker held_;   ///< measured between ops
  MemoryTracker pools_;  ///< measured also during ops
  float gradient_scale_;
  InstructionId enqueued_ = 0;  ///< the instruction that is being enqueued
  ProgramUpdates in_program_;   ///< reductions and updates that the Program does itself
  std::vector<double> step_losses_;
};

}  // namespace bubblescope::exec
