// The cost model: how long every op and every message takes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// Durations of the ops of one stage (one slice of it, where sequences are cut).
struct StageCost {
  Nanos forward = 0;
  Nanos backward = 0;  ///< the full backward
  Nanos input_grad = 0;
  Nanos weight_grad = 0;
  Nanos recompute = 0;  ///< of what the stage recomputes, the whole forward or part of it
  Nanos evict = 0;      ///< the copy of what a forward keeps into another memory
  Nanos load = 0;       ///< and back
  /// An overlapped pair whose forward is on this stage; forward + the other's backward unless set.
  std::optional<Nanos> overlapped_pair = {};
};

/// Durations of what a stage does once per update, with all its weights or all their gradients.
struct UpdateCost {
  Nanos optimizer = 0;
  Nanos reduce_grad = 0;
  Nanos unshard = 0;
};

struct CostModel {
  std::int32_t slices = 1;
  std::vector<StageCost> stages;  ///< [stage * slices + slice]
  Nanos message = 0;              ///< one message between two ranks
  Nanos byte_time = 0;            ///< of it, what its bytes take and not latency
  /// [from * ranks + to]; where given, it replaces `message`.
  std::vector<Nanos> message_between;
  /// Where given, it replaces `byte_time`.
  std::vector<Nanos> byte_time_between;
  std::vector<UpdateCost> updates;  ///< [stage]; empty: they take no time
  Nanos norm = 0;                   ///< the gradient norm, summed over all ranks

  const StageCost& stage_cost(const Op& op) const {
    return stages[static_cast<std::size_t>(std::int64_t{op.stage} * slices + op.slice)];
  }
};

/// The cost flags of the command line: one micro-batch through one rank's whole share, or through
/// one chunk, or through one slice of a chunk. Ranks that share a stage put their shares together:
/// a micro-batch takes as many times longer there, and each of them runs as many times fewer.
struct UniformCost {
  enum class Per : std::uint8_t { kRank, kChunk, kSlice };

  Nanos forward = 1'000'000;
  Nanos input_grad = 1'000'000;
  Nanos weight_grad = 1'000'000;
  std::optional<Nanos> backward;             ///< input_grad + weight_grad unless set
  std::optional<Nanos> recompute;            ///< of a whole stage; forward unless set
  std::optional<Nanos> selective_recompute;  ///< of the core of attention
  Nanos copy = 0;  ///< what a forward keeps, from one memory to another, one way
  Nanos message = 0;
  UpdateCost update;  ///< of a rank's whole share, or of a chunk
  Nanos norm = 0;
  Per per = Per::kRank;

  Nanos full_backward() const { return backward.value_or(input_grad + weight_grad); }
  /// Unless set, the core of attention is as large a part of a forward as in GPT-3:
  /// s / (6 h + s) with s = 2048, h = 12288 (Korthikanti et al. 2022).
  Nanos recompute_of(Recompute kind) const {
    if (kind == Recompute::kNone) return 0;
    if (kind == Recompute::kFull) return recompute.value_or(forward);
    return selective_recompute.value_or(forward * 27 / 1000);
  }
};

/// Spreads uniform costs over a schedule's stages: a share is cut into chunks (and slices), the
/// first `share mod parts` of which are one nanosecond longer, so that nothing is lost.
CostModel spread(const UniformCost& cost, const Schedule& schedule);

/// Duration of every instruction of a Program, in its order.
/// Throws Error when the model does not cover the Program's stages.
std::vector<Nanos> price(const Program& program, const CostModel& costs);

/// What of the duration of every message and copy its bytes take: that is as long as its
/// micro-batch. A copy is all bytes.
std::vector<Nanos> price_bytes(const Program& program, const CostModel& costs);

}  // namespace bubblescope
