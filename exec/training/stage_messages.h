// The matrices that stages pass to each other, within a process and as payloads of messages.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/runtime/blob.h"
#include "exec/runtime/processes.h"
#include "exec/training/mailbox.h"
#include "exec/training/serial_training.h"
#include "sim/ir/program.h"
#include "sim/model/injection.h"

namespace bubblescope::exec {

/// All functions are thread-safe.
class StageMessages {
 public:
  /// References are not copied.
  StageMessages(const Schedule& schedule, const TrainingOptions& options,
                const Processes& processes);

  /// Whether shards of the output layer send input gradients before they know the whole softmax
  /// (vocabulary_shard.h).
  bool has_early_grads() const { return has_early_grads_; }

  /// The inputs of an op: one matrix per stage that its stage reads in this direction. One that has
  /// not arrived is zero, as on real hardware. Throws Error for a damaged one.
  std::vector<Matrix> read(Direction direction, const Op& op);
  /// Gives a matrix to all stages that read it.
  void write(Direction direction, const Op& op, Matrix matrix);
  /// Gives each stage that an op's stage reads its gradient.
  void write_grads(const Op& op, std::vector<Matrix> grads);

  /// Moves matrices from their producer to their readers; if they are not produced yet, nothing is
  /// moved.
  void carry(const Instruction& message, Damage damage);
  Blob pack(const Instruction& message);
  void unpack(const Instruction& message, BlobReader& reader);

 private:
  std::vector<Slot> slots_of(const Instruction& message) const;
  Matrix take(const Slot& slot, const Op& op, std::int32_t producer);
  void put(const Slot& slot, const Op& op, Matrix matrix);

  const Schedule& schedule_;
  const TransformerShape& model_;
  const Processes& processes_;
  bool has_early_grads_;
  Mailbox inbox_;   ///< at the reader
  Mailbox outbox_;  ///< at the producer
};

}  // namespace bubblescope::exec
