// The values of a stage that may differ by micro-batch and slice: their names and places, and lists
// of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "sim/model/stage_entry.h"

namespace bubblescope::inline sim {

/// The values of a stage that may differ by micro-batch and slice: the times of compute ops, in the
/// order of OpKind; of other ops; the bytes of activations; and of messages.
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

/// The meaning of a key.
struct StageValue {
  CostKey key;
  const char* name;  ///< in cost files
  /// Null for the forward, which is always given, and for the two parts of activation_bytes.
  std::optional<std::int64_t> StageEntry::*member;
  bool is_size = false;  ///< whether it is in bytes; else it is a time
};

/// All values of a stage, by key.
inline constexpr std::array<StageValue, 17> kStageValues{
    {{CostKey::kForward, "forward", nullptr},
     {CostKey::kBackward, "backward", &StageEntry::backward},
     {CostKey::kInputGrad, "input_grad", &StageEntry::input_grad},
     {CostKey::kWeightGrad, "weight_grad", &StageEntry::weight_grad},
     {CostKey::kRecompute, "recompute", &StageEntry::recompute},
     {CostKey::kSelectiveRecompute, "selective_recompute", &StageEntry::selective_recompute},
     {CostKey::kOverlappedPair, "overlapped_pair", &StageEntry::overlapped_pair},
     {CostKey::kEvict, "evict", &StageEntry::evict},
     {CostKey::kLoad, "load", &StageEntry::load},
     {CostKey::kEvictToRank, "evict_to_rank", &StageEntry::evict_to_rank},
     {CostKey::kLoadFromRank, "load_from_rank", &StageEntry::load_from_rank},
     {CostKey::kSaved, "saved", nullptr, true},
     {CostKey::kReleasedByInputGrad, "released_by_input_grad", nullptr, true},
     {CostKey::kCheckpoint, "checkpoint", &StageEntry::checkpoint, true},
     {CostKey::kSelectiveCheckpoint, "selective_checkpoint", &StageEntry::selective_checkpoint,
      true},
     {CostKey::kMessageLatency, "message_latency", &StageEntry::message_latency},
     {CostKey::kMessageBytes, "message_bytes", &StageEntry::message_bytes, true}}};

constexpr const StageValue& stage_value(CostKey key) {
  return kStageValues[static_cast<std::size_t>(key)];
}

static_assert([] {
  for (const StageValue& value : kStageValues)
    if (&stage_value(value.key) != &value) return false;
  return true;
}());

inline constexpr std::span<const StageValue> kOpTimes = std::span(kStageValues).first(11);
inline constexpr std::span<const StageValue> kActivations = std::span(kStageValues).subspan(11, 4);
inline constexpr std::span<const StageValue> kMessageValues = std::span(kStageValues).last(2);

/// Returns the key of a compute kind's time.
constexpr CostKey time_key(OpKind kind) { return static_cast<CostKey>(kind); }
static_assert(time_key(OpKind::kRecompute) == CostKey::kRecompute);

/// The names of the times of compute ops, by kind.
inline constexpr std::array<const char*, kComputeKinds> kCostKeys{
    kStageValues[0].name, kStageValues[1].name, kStageValues[2].name, kStageValues[3].name,
    kStageValues[4].name};

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

/// The time of an op, where the entry gives it.
std::optional<Nanos> time_of(const StageEntry& entry, CostKey key);

}  // namespace bubblescope::inline sim
