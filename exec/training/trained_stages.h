// The stages that a process trains: weights, gradients, and what micro-batches have saved on them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "exec/runtime/blob.h"
#include "exec/runtime/processes.h"
#include "exec/training/resumable_training.h"
#include "exec/training/serial_training.h"
#include "exec/training/stage_replicas.h"
#include "exec/training/stage_state.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

class TrainedStages {
 public:
  /// References are not copied. Holds only the stages of this process. Throws Error.
  TrainedStages(const Schedule& schedule, const Program& program, const TrainingOptions& options,
                const Processes& processes);
  TrainedStages(const TrainedStages&) = delete;
  TrainedStages& operator=(const TrainedStages&) = delete;

  const Schedule& schedule() const { return schedule_; }
  const TrainingOptions& options() const { return options_; }
  const Processes& processes() const { return processes_; }
  float gradient_scale() const { return scale_; }

  /// Whether the program has its own optimizer steps.
  bool has_program_updates() const { return has_program_updates_; }

  /// The values that an op reads and writes.
  MicrobatchState& state_of(const Op& op);
  const Stage& weights_of(const Op& op) const;
  std::vector<Matrix>& gradients_of(const Op& op) { return stages_[replicas_.find(op)].gradients; }
  Tokens tokens_of(const Op& op) const;
  /// The position of an op's slice and what it shares with others; nullopt without slices.
  std::optional<Slice> slice_of(const Op& op);
  /// The memory of the slice's own queries, keys and values.
  Bytes context_bytes(const Op& op) const;
  /// Frees what slices share after the op of the last slice that needs it.
  void free_context(const Op& op, std::int32_t last_slice);

  /// Sets the bytes that the micro-batch of an op holds on its rank.
  void set_held(const Op& op, Bytes bytes);
  /// Adds what a rank holds of others.
  void add_held(std::int32_t rank, Bytes bytes);

  /// Ends a micro-batch on a stage: its weights are released, and updated if the schedule does so.
  void end_microbatch(const Op& op);

  /// The gradients of the stage that an instruction of a whole stage is for.
  std::vector<Matrix>& gradients_of(const Instruction& instruction) {
    return stages_[replicas_.find(instruction.op.stage, instruction.rank)].gradients;
  }
  /// Runs an optimizer step of the program.
  void update(const Instruction& step) { update(replicas_.find(step.op.stage, step.rank)); }

  /// Ends a step while nothing runs: sums the gradients of replicas and updates the weights, unless
  /// the program's own optimizer steps did so.
  void finish_step();

  /// Collects the results of all processes; every process must call it.
  TrainingResult result() const;

  /// The most bytes of activations that each rank has held; every process must call it.
  std::vector<Bytes> peak_bytes() const;

  /// Returns the number of steps that were trained.
  std::int32_t steps() const { return static_cast<std::int32_t>(losses_.size()); }

  /// The state of this process between two steps, from which restore() continues bit for bit.
  Blob save() const;
  /// Throws Error if the bytes are not the state of a training like this one.
  void restore(std::span<const std::byte> bytes);
  /// The TrainedStages must outlive it.
  ResumableTraining resumable();

 private:
  void make_replica(StageReplica replica);
  const WeightUse& use_of(const Op& op) const;
  std::size_t stage_of(StageReplica replica) const {
    return static_cast<std::size_t>(replicas_.stage(replica));
  }
  void update(StageReplica replica);
  void sum_replicas();

  const Schedule& schedule_;
  const Processes& processes_;
  TrainingOptions options_;
  std::vector<std::vector<WeightUse>> uses_;
  float scale_;
  std::vector<float> update_scales_;  ///< [stage]
  StageReplicas replicas_;
  std::vector<StageState> stages_;  ///< [replica]
  std::vector<RankMemory> memory_;  ///< [rank]
  bool has_program_updates_ = false;
  std::vector<double> losses_;
};

}  // namespace bubblescope::exec
