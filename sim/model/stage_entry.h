// The entry of one stage in a cost table.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "sim/ir/op.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// Durations by kind with 2, 3, ... ranks busy; empty for kinds that are not listed.
using ContentionEntry = std::array<std::vector<Nanos>, kComputeKinds>;

/// The entry of one stage (for one micro-batch, whole sequence); keys that are left out are empty.
struct StageEntry {
  Nanos forward = 0;
  std::optional<Nanos> backward;  ///< the full backward; input_grad + weight_grad unless given
  std::optional<Nanos> input_grad;
  std::optional<Nanos> weight_grad;
  std::optional<Nanos> recompute;            ///< forward unless given
  std::optional<Nanos> selective_recompute;  ///< only the attention core
  std::optional<Nanos> overlapped_pair;
  std::optional<Nanos> evict;  ///< of a forward's saved data; from CostTable::copy unless given
  std::optional<Nanos> load;   ///< evict unless given
  std::optional<Nanos> evict_to_rank;  ///< to another rank's memory; evict unless given
  std::optional<Nanos> load_from_rank;
  std::optional<MemoryDelta> activation_bytes;
  UpdateCost update;                          ///< 0 unless given
  std::optional<Bytes> weight_bytes;          ///< one copy of the weights
  std::optional<Bytes> checkpoint;            ///< saved where the whole stage is recomputed
  std::optional<Bytes> selective_checkpoint;  ///< saved where only attention is recomputed
  std::optional<Nanos> message_latency;       ///< between it and the next stage
  std::optional<Bytes> message_bytes;         ///< likewise; that of the link unless given
  std::optional<ContentionEntry> contended;   ///< not slowed by others on its device unless given
};

/// The full backward, which takes as long as its halves unless it is given.
inline std::optional<Nanos> full_backward(const StageEntry& entry) {
  if (entry.backward || !entry.input_grad) return entry.backward;
  return *entry.input_grad + entry.weight_grad.value_or(0);
}

}  // namespace bubblescope::inline sim
