// The compute ops of a schedule on GPUs: what each computes, and the activations and gradients that
// it holds for the ops that follow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_contexts.h"
#include "exec/gpu/host/gpu_data.h"
#include "exec/gpu/host/gpu_evictions.h"
#include "exec/gpu/host/gpu_layers.h"
#include "exec/gpu/host/gpu_mailbox.h"
#include "exec/gpu/host/gpu_microbatch.h"
#include "exec/gpu/host/gpu_weights.h"
#include "exec/gpu/host/job.h"
#include "exec/gpu/host/memory_tracker.h"

namespace bubblescope::exec {

/// Shared by all ops of this process.
struct GpuShared {
  GpuWeights& weights;
  GpuMailbox& mailbox;
  GpuData& data;
  MemoryTracker& held;  ///< of activations, between ops
};

struct GpuOpsOptions {
  std::int32_t replicas = 1;             ///< of the pipeline, whose gradients are added up
  bool updates_in_program = false;       ///< the Program has optimizer steps of its own
  const HappensBefore* order = nullptr;  ///< if a rank's memory is used on several streams
};

class GpuOps {
 public:
  /// References are not copied.
  GpuOps(const GpuMachine& machine, const JobRequest& job, const GpuShared& shared,
         const GpuOpsOptions& options);

  void begin_step();

  // Each enqueues a compute op, of a full backward the second half after the first. Throw Error if
  // it runs before what it needs is ready.
  void compute_forward(InstructionId id, const Op& op, void* stream);
  void recompute_forward(InstructionId id, const Op& op, void* stream);
  void compute_input_grad(InstructionId id, const Op& op, void* stream);
  void compute_weight_grad(InstructionId id, const Op& op, void* stream);

  /// The memory that an EVICT copies away.
  GpuBuffers release_evicted(InstructionId id, const Op& evict);
  /// The memory to which a LOAD copies back.
  GpuBuffers acquire_loaded(InstructionId id, const Op& load);

  /// Returns the layers of each rank; nullopt for ranks of other processes.
  std::vector<std::optional<GpuLayers>>& layers() { return layers_; }
  const std::vector<std::optional<GpuLayers>>& layers() const { return layers_; }

 private:
  void start(InstructionId id, const Op& op, void* stream);
  void set_held(const Op& op, Bytes bytes);
  std::size_t rank_of(const Op& op) const;
  GpuLayers& layers_of(const Op& op) { return *layers_[rank_of(op)]; }
  GpuMicrobatch& state_of(const Op& op);
  GpuMatrix input_of(const Op& op) const;
  const GpuSliceContext* context_of(const Op& op) {
    return contexts_.find(op, layers_of(op).stream, shared_.weights.read(op));
  }
  Bytes context_bytes(const Op& op) const;

  const Schedule& schedule_;
  GpuShared shared_;
  TransformerShape model_;
  BubblescopeDtype dtype_;
  std::vector<std::optional<GpuLayers>> layers_;
  std::vector<GpuMicrobatch> states_;  ///< [stage * forwards + Schedule::forward_index]
  GpuContexts contexts_;
  float gradient_scale_;
  bool updates_in_program_;
  InstructionId instruction_ = 0;  ///< the one that is being enqueued
};

}  // namespace bubblescope::exec
