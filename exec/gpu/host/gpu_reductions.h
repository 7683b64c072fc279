// Gradient reductions on GPUs for stages whose weights several ranks hold. Every rank posts its own
// gradients; then every rank adds up all posted gradients in the same order, so that all get the
// same sum, bit for bit. Posts and sums run on streams; a sum waits for all posts.
//
//   rank 0   post 0         sum 0 + 1
//   rank 1        post 1       sum 0 + 1
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_weights.h"

namespace bubblescope::exec {

class GpuReductions {
 public:
  /// Allocates buffers where this process holds several replicas of the same stage. Nothing is
  /// copied. Throws Error if a device is out of memory.
  GpuReductions(const GpuMachine& machine, const Schedule& schedule, const GpuWeights& weights);

  /// Call only while nothing runs.
  void begin_step();

  /// Copies a replica's gradients to a buffer that the other replicas read. In schedules without
  /// flushes, the replica may post again while others still read its previous post.
  void post_gradients(StageReplica replica, void* stream);

  /// Replaces a replica's gradients by the sum of all posted gradients of its stage, added up by
  /// stage and rank.
  void sum_gradients(StageReplica replica, void* stream);

  /// Posts and sums the gradients of all replicas, and waits; call only while nothing runs.
  void sum_all();

  /// Whether this process holds several replicas of the same weights.
  bool has_replicas() const;

 private:
  using Gradients = std::vector<GpuMatrix>;

  struct PostedGradients {
    std::vector<Gradients> rounds;  ///< used in turn; empty if the stage has one replica
    GpuMatrix buffer;               ///< on the replica's device: receives the gradients of another
    std::size_t count = 0;          ///< posts in this step
  };

  bool is_shared(StageReplica replica) const { return !posted_[replica].rounds.empty(); }
  void add_room(StageReplica replica, std::size_t rounds);
  GpuMatrix place(StageReplica replica, GpuMatrix shape);
  std::int32_t device_of(StageReplica replica) const;
  void copy(const GpuMatrix& to, const GpuMatrix& from, void* stream) const;
  void add(const GpuMatrix& to, const GpuMatrix& part, void* stream) const;

  const GpuMachine& machine_;
  const GpuWeights& weights_;
  std::vector<PostedGradients> posted_;  ///< [replica]
  std::vector<GpuHandle> memory_;
  std::vector<GpuHandle> streams_;  ///< [device]
};

}  // namespace bubblescope::exec
