// Trains a transformer by the ops of a schedule. A step must produce the losses, gradients and
// weights that a single rank would produce.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/runtime/backend.h"
#include "exec/runtime/processes.h"
#include "exec/training/gradient_exchange.h"
#include "exec/training/resumable_training.h"
#include "exec/training/saved_forward_blob.h"
#include "exec/training/serial_training.h"
#include "exec/training/stage_messages.h"
#include "exec/training/stage_replicas.h"
#include "exec/training/stage_state.h"
#include "exec/training/vocabulary_shard.h"
#include "exec/training/weight_versions.h"
#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::exec {

class Training {
 public:
  /// References are not copied. Holds only the stages of this process. Throws Error.
  Training(const Schedule& schedule, const Program& program, const TrainingOptions& options,
           const Processes& processes = this_process_alone());
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  /// The work of the program's instructions. The Training must outlive it.
  Work work();

  /// The payloads of messages between processes. The Training must outlive it.
  PayloadCodec payload_codec();

  /// Ends a step while nothing runs: sums the gradients of replicas and updates the weights, unless
  /// the program's own optimizer steps did so.
  void finish_step();

  // Every process must call these two:
  TrainingResult result() const;          ///< of all processes
  std::vector<Bytes> peak_bytes() const;  ///< the most activations that each rank has held

  /// The number of steps that were trained.
  std::int32_t steps() const { return static_cast<std::int32_t>(losses_.size()); }

  /// The state of this process between two steps, from which restore() continues bit for bit.
  Blob save() const;
  /// Throws Error if the bytes are not the state of a training like this one.
  void restore(std::span<const std::byte> bytes);
  /// The Training must outlive it.
  ResumableTraining resumable();

 private:
  void run(const WorkItem& item);
  void make_replica(StageReplica replica);
  void compute_forward(const Op& op);
  void recompute_forward(const Op& op);
  void compute_input_grad(const Op& op);
  void compute_weight_grad(const Op& op);
  Matrix read_output_grad(const Op& op);
  bool is_shard(const Op& op) const { return schedule_.is_beside(op.stage); }
  void run_shard_pass(const Instruction& instruction);
  void run_shard_forward(const Op& op);
  void send_early_grad(const Op& op);
  void end_shard(const Op& op);
  std::vector<ShardStatistics> statistics_of(const Op& op);
  void move_out(const Instruction& evict);
  void move_back(const Instruction& load);
  bool is_offloaded_here(const Instruction& copy) const;
  Blob pack_copy(const Instruction& copy);
  Blob keep(const Instruction& copy, std::span<const std::byte> bytes);
  void unpack_copy(const Instruction& copy, std::span<const std::byte> bytes);
  [[noreturn]] static void refuse_before(const Op& op, const char* lack);
  void set_held(const Op& op, Bytes bytes);
  MicrobatchState& state_of(const Op& op);
  const Stage& weights_of(const Op& op) const;
  void update(StageReplica replica);
  Tokens tokens_of(const Op& op) const;
  std::optional<Slice> slice_of(const Op& op);
  std::int32_t rank_of(const Op& op) const { return schedule_.rank_of(op.stage, op.microbatch); }
  StageReplica replica_of(const Instruction& instruction) const {
    return stage_replicas_.find(instruction.op.stage, instruction.rank);
  }
  std::size_t stage_of(StageReplica replica) const {
    return static_cast<std::size_t>(stage_replicas_.stage(replica));
  }
  void reduce(InstructionId id);
  Bytes context_bytes(const Op& op) const;
  void free_context(const Op& op, std::int32_t last_slice);
  void sum_replicas();

  const Schedule& schedule_;
  const Program& program_;
  const Processes& processes_;
  TrainingOptions options_;
  std::vector<std::vector<WeightUse>> uses_;
  float scale_;
  std::vector<float> update_scales_;  ///< [stage]
  StageReplicas stage_replicas_;
  std::vector<StageState> stages_;  ///< [replica]
  std::vector<RankMemory> memory_;  ///< [rank]
  StageMessages messages_;
  GradientExchange exchange_;
  OffloadStore offload_store_;
  ShardExchange shard_exchange_;
  bool program_updates_ = false;  ///< the program has its own optimizer steps
  std::vector<double> losses_;
};

/// The bytes that each op adds to its rank's memory, per stage, and the bytes that a forward saves
/// with recomputation.
MemoryModel training_memory(const Schedule& schedule, const TrainingOptions& options);

}  // namespace bubblescope::exec
