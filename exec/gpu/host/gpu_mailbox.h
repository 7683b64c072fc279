// Buffers for activations and gradients that stages on GPUs pass to each other.
#pragma once

#include <vector>

#include "exec/gpu/host/device_slabs.h"
#include "exec/gpu/host/gpu_layers.h"
#include "exec/training/mailbox.h"
#include "exec/training/stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// Source and target of a message. An end in another process has no data.
struct GpuMessage {
  GpuMatrix from;
  GpuMatrix to;
};

/// Holds one matrix per value that a stage passes to another: at the reader, and also at the
/// producer where that is another rank. They are zero until they are written.
class GpuMailbox {
 public:
  /// The matrices have the model's width and one row per token of their slice.
  GpuMailbox(const GpuMachine& machine, const Schedule& schedule, const TransformerShape& model,
             BubblescopeDtype dtype);

  /// Returns the matrix at the stage that reads it.
  const GpuMatrix& inbox(const Slot& slot) const { return inbox_[index_(slot)]; }
  /// The matrix at the stage that produces it. The slot names the reader.
  const GpuMatrix& outbox(const Slot& slot) const;

  /// The two ends of a message.
  GpuMessage find(const Op& op) const;

 private:
  void add(const GpuMachine& machine, const Schedule& schedule, const Slot& slot,
           const GpuMatrix& shape);

  SlotIndex index_;
  std::vector<GpuMatrix> inbox_;
  std::vector<GpuMatrix> outbox_;  ///< empty if the producer writes to the inbox
  DeviceSlabs memory_;
};

}  // namespace bubblescope::exec
