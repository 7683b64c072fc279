// Where stages on GPUs put what they make for each other.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_layers.h"
#include "exec/training/mailbox.h"
#include "exec/training/stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

/// Where what a message carries lies; a place in another process has no data.
struct GpuMessage {
  GpuMatrix from;
  GpuMatrix to;
};

/// A matrix for every product that a stage makes for another: one at the reader and, where that is
/// on another rank, one at the maker. They hold zeros until something is put there.
class GpuMail {
 public:
  /// The matrices have the model's width, and a row per token of their slice.
  GpuMail(const GpuMachine& machine, const Schedule& schedule, const TransformerShape& model,
          BubblescopeNumber number);

  /// At the stage that reads it.
  const GpuMatrix& inbox(const Slot& slot) const { return inbox_[index(slot)]; }
  /// Where the stage that makes it writes it: the slot is the reader's.
  const GpuMatrix& outbox(const Slot& slot) const;

  /// Of a message's op.
  GpuMessage find(const Op& op) const;

 private:
  std::size_t index(const Slot& slot) const;
  void add(const GpuMachine& machine, const Schedule& schedule, const Slot& slot, GpuMatrix shape);

  std::int32_t stages_;
  std::int32_t microbatches_;
  std::int32_t slices_;
  std::vector<GpuMatrix> inbox_;
  std::vector<GpuMatrix> outbox_;  ///< empty where the maker writes into the inbox
  std::vector<GpuHandle> memory_;
};

}  // namespace bubblescope
