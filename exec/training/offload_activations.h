// Offloads activations to other memory and loads them back. Memory of another process is reached by
// messages.
#pragma once

#include <span>

#include "exec/runtime/blob.h"
#include "exec/training/saved_forward_blob.h"
#include "exec/training/trained_stages.h"

namespace bubblescope::exec {

class OffloadedActivations {
 public:
  /// References are not copied.
  explicit OffloadedActivations(TrainedStages& stages) : stages_(stages) {}

  /// Runs an EVICT or a LOAD. Throws Error if there is nothing to move.
  void move_out(const Instruction& evict);
  void move_back(const Instruction& load);

  /// Packs the activations that an EVICT sends to its offload target; a LOAD sends a request
  /// without data.
  Blob pack(const Instruction& copy);
  /// Runs in the process of the offload target; the result is the reply to a LOAD.
  Blob keep(const Instruction& copy, std::span<const std::byte> bytes);
  /// Stores the received activations for the LOAD itself.
  void unpack(const Instruction& copy, std::span<const std::byte> bytes);

 private:
  TrainedStages& stages_;
  OffloadStore store_;
};

}  // namespace bubblescope::exec
