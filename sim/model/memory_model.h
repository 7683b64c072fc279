// The memory model: what every op adds to its rank's memory, and when it is released.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/ir/units.h"
#include "sim/model/cluster.h"
#include "sim/model/cost_tensor.h"

namespace bubblescope::inline sim {

/// When a chunk's activations are released; a full backward always releases them all.
enum class Release : std::uint8_t {
  kWeightGrad,  ///< at W's end
  kInputGrad,   ///< at I's end
  kHalf,        ///< half at I's end, half at W's end
};

/// The amounts that ops of each kind add, in exact integers of some unit; F, I and W sum to 0.
struct MemoryDelta {
  std::int64_t forward = 1;
  std::int64_t input_grad = 0;
  std::int64_t weight_grad = -1;

  std::int64_t operator()(OpKind kind) const {
    if (kind == OpKind::kForward) return forward;
    if (kind == OpKind::kBackward) return input_grad + weight_grad;
    if (kind == OpKind::kInputGrad) return input_grad;
    if (kind == OpKind::kWeightGrad) return weight_grad;
    return 0;
  }
  bool operator==(const MemoryDelta&) const = default;
};

/// A chunk's activations in millionths, so that every release rule is an integer.
MemoryDelta chunk_millionths(Release release);

/// The fraction of its activations that a forward saves if the rest is recomputed.
struct SavedFractions {
  Millionths full = 0;  ///< the stage's input
  /// As in GPT-3: 34 of the 34 + 5 a s / h bytes per position and feature, with a = 96, s = 2048, h
  /// = 12288 (Korthikanti et al. 2022).
  Millionths selective = 298'246;

  Millionths of(Recompute recompute) const {
    if (recompute == Recompute::kNone) return kWhole;
    return recompute == Recompute::kFull ? full : selective;
  }
};

/// The bytes of one micro-batch's slice on a stage.
struct SliceBytes {
  MemoryDelta activations;
  Bytes checkpoint = 0;  ///< what its forward saves if the rest is recomputed
};

struct MemoryModel {
  Release release = Release::kWeightGrad;
  /// In millionths of the user's own unit, per chunk and times `unit_parts`.
  MemoryDelta unit{kWhole, 0, -kWhole};
  std::int32_t unit_parts = 1;                ///< chunks and slices that share one unit
  SavedFractions saved;                       ///< for stages that recompute
  std::vector<MemoryDelta> activation_bytes;  ///< [stage]; empty if no cost file gives bytes
  std::vector<Bytes> weight_bytes;            ///< [stage]: one copy of its weights; may be empty
  /// [stage]: what a forward saves if the rest is recomputed; empty: `saved` decides.
  std::vector<Bytes> checkpoint_bytes;
  /// If present, replaces `activation_bytes` and `checkpoint_bytes`, which then hold the largest of
  /// a stage's micro-batches.
  CostTensor<SliceBytes> by_microbatch = {};
  std::vector<Bytes> static_bytes;  ///< [rank]: weights, gradients, optimizer
  /// Whether outputs count until their sends have ended, as in Programs with a send budget, and
  /// their bytes; empty: unknown.
  bool counts_outputs = false;
  CostTensor<MessageSizes> output_bytes = {};
  /// Whether weights count from their UNSHARD to their RESHARD, and [stage] their bytes; empty:
  /// unknown.
  bool counts_gathered = false;
  std::vector<Bytes> gathered_bytes = {};
  std::vector<std::int64_t> cap;  ///< [rank], in millionths of the unit; empty: none
  std::vector<Bytes> cap_bytes;   ///< [rank], including static memory; empty: none
};

}  // namespace bubblescope::inline sim
