// The entry of one stage in a cost table, and lists of the values that differ by micro-batch or
// slice.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

/// Durations by kind with 2, 3, ... ranks busy; empty for kinds that are not listed.
using ContentionEntry = std::array<std::vector<Nanos>, kComputeKinds>;

/// The keys of compute kinds in cost files, by kind.
inline constexpr std::array<const char*, kComputeKinds> kCostKeys{
    "forward", "backward", "input_grad", "weight_grad", "recompute"};

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

/// The values of a stage that may differ by micro-batch and slice.
enum class CostKey : std::uint8_t {
  kForward,
  kBackward,
  kInputGrad,
  kWeightGrad,
  kRecompute,
  kSelectiveRecompute,
  kOverlappedPair,
  kEvict,
  kLoad,
  kEvictToRank,
  kLoadFromRank,
  kSaved,
  kReleasedByInputGrad,
  kCheckpoint,
  kSelectiveCheckpoint,
  kMessageLatency,
  kMessageBytes,
};

/// One value of a stage for every micro-batch and slice; cost_lists.h looks them up.
struct CostList {
  CostKey key = CostKey::kForward;
  std::int32_t microbatches = 0;     ///< 0: all have the same
  std::int32_t slices = 0;           ///< 0: the values are those of whole sequences
  std::vector<std::int64_t> values;  ///< [microbatch * slices + slice]
  std::string where = {};            ///< its JSON pointer, for messages

  std::int64_t at(std::int32_t microbatch, std::int32_t slice) const {
    const std::int64_t row = microbatches == 0 ? 0 : microbatch;
    return values[static_cast<std::size_t>(slices == 0 ? row : row * slices + slice)];
  }
  std::int64_t of_sequence(std::int32_t microbatch) const;  ///< the sum over slices
  std::int64_t mean() const;     ///< over micro-batches, of whole sequences
  std::int64_t largest() const;  ///< likewise
};

/// Sets one value of an entry.
void set_value(StageEntry& entry, CostKey key, std::int64_t value);

}  // namespace bubblescope::inline sim
