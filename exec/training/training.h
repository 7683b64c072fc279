// Trains a transformer by the ops of a schedule. A step must produce the losses, gradients and
// weights that a single rank would produce.
#pragma once

#include <span>

#include "exec/runtime/backend.h"
#include "exec/runtime/processes.h"
#include "exec/training/gradient_exchange.h"
#include "exec/training/offload_activations.h"
#include "exec/training/shard_passes.h"
#include "exec/training/stage_messages.h"
#include "exec/training/stage_passes.h"
#include "exec/training/trained_stages.h"
#include "sim/ir/schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::exec {

/// Runs the instructions of a Program: passes of stages and shards, messages, copies, reductions.
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

  /// Ends a step while nothing runs.
  void finish_step();

  /// The stages of this process, and with them the results.
  const TrainedStages& stages() const { return stages_; }
  TrainedStages& stages() { return stages_; }

 private:
  void run(const WorkItem& item);
  void reduce(InstructionId id);
  bool is_of_shard(const Instruction& instruction) const;
  Blob pack(InstructionId message);
  void unpack(InstructionId message, std::span<const std::byte> bytes);

  const Program& program_;
  TrainedStages stages_;
  StageMessages messages_;
  GradientExchange exchange_;
  StagePasses passes_;
  ShardPasses shard_passes_;
  OffloadedActivations offloaded_;
};

/// The bytes that each op adds to its rank's memory, per stage, and the bytes that a forward saves
/// with recomputation.
MemoryModel training_memory(const Schedule& schedule, const TrainingOptions& options);

}  // namespace bubblescope::exec
