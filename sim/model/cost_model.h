// The cost model: the duration of every op and every message.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/cost_tensor.h"
#include "sim/model/part_costs.h"

namespace bubblescope::inline sim {

/// Durations of one stage's ops, or of one slice if sequences are sliced.
struct StageCost {
  Nanos forward = 0;
  Nanos backward = 0;  ///< the full backward
  Nanos input_grad = 0;
  Nanos weight_grad = 0;
  Nanos recompute = 0;  ///< for what the stage recomputes: the whole forward or part of it
  Nanos evict = 0;      ///< copy of a forward's saved activations to another memory
  Nanos load = 0;       ///< and back
  /// An overlapped pair whose forward is on this stage; unless set, the sum of its two ops.
  std::optional<Nanos> overlapped_pair = {};
  bool operator==(const StageCost&) const = default;
};

/// Durations of the ops that a stage runs once per update, on all its weights or gradients.
struct UpdateCost {
  Nanos optimizer = 0;
  Nanos reduce_grad = 0;
  Nanos unshard = 0;
  bool operator==(const UpdateCost&) const = default;
};

/// Durations of the two messages that a micro-batch's ops on a stage send: the activation to the
/// next stage, and the gradient to the previous one.
struct MessageCost {
  Nanos forward = 0;
  Nanos forward_bytes = 0;  ///< the part of `forward` that its bytes take, without latency
  Nanos backward = 0;
  Nanos backward_bytes = 0;
};

struct CostModel {
  std::int32_t slices = 1;
  std::vector<StageCost> stages;  ///< [stage * slices + slice]
  /// If present, replaces `stages`, which then holds the means over micro-batches.
  CostTensor<StageCost> by_microbatch = {};
  Nanos message = 0;    ///< one message between two ranks
  Nanos byte_time = 0;  ///< the part of `message` that its bytes take, without latency
  std::vector<Nanos> message_between;  ///< [from * ranks + to]; if present, replaces `message`
  /// If present, replaces `byte_time`.
  std::vector<Nanos> byte_time_between;
  /// If present, replaces all of these for what ops send.
  CostTensor<MessageCost> messages = {};
  std::vector<UpdateCost> updates;  ///< [stage]; empty: updates take no time
  Nanos norm = 0;                   ///< the gradient norm, summed over all ranks
  Nanos op_gap = 0;                 ///< between two ops of a rank, even if the second is ready
  PartCosts parts = {};             ///< of ops that have parts, whose times are in `stages`
  bool pairs_overlap = true;        ///< whether pairs take their own times: not in series

  const StageCost& stage_cost(const Op& op) const {
    if (!by_microbatch.empty()) return by_microbatch(op);
    return stages[static_cast<std::size_t>(std::int64_t{op.stage} * slices + op.slice)];
  }
};

/// Uniform costs, as the command line gives them: the time of one micro-batch for one rank's whole
/// share of the model, for one chunk, or for one slice of a chunk. Ranks that share a stage combine
/// their shares: a micro-batch takes as many times longer, and each rank runs as many times fewer.
struct UniformCost {
  enum class Per : std::uint8_t { kRank, kChunk, kSlice };

  Nanos forward = 1'000'000;
  Nanos input_grad = 1'000'000;
  Nanos weight_grad = 1'000'000;
  std::optional<Nanos> backward;             ///< input_grad + weight_grad unless set
  std::optional<Nanos> recompute;            ///< of a whole stage; `forward` unless set
  std::optional<Nanos> selective_recompute;  ///< of the core of attention
  Nanos copy = 0;                            ///< copies what one forward saves, one way
  Nanos message = 0;
  /// The forward of the output layer, beside the ranks' shares; its input gradient and its weight
  /// gradient take as long each. On the last stage, or divided over the side stages.
  Nanos output_layer = 0;
  UpdateCost update;  ///< of a rank's whole share, or of a chunk
  Nanos norm = 0;
  Per per = Per::kRank;

  Nanos full_backward() const { return backward.value_or(input_grad + weight_grad); }
  /// Whether the halves of a split backward take as long as the full one.
  bool halves_add_up() const { return full_backward() == input_grad + weight_grad; }
  /// Unless set, the core of attention is the same fraction of a forward as in GPT-3: s / (6 h + s)
  /// with s = 2048, h = 12288 (Korthikanti et al. 2022).
  Nanos recompute_of(Recompute kind) const {
    if (kind == Recompute::kNone) return 0;
    if (kind == Recompute::kFull) return recompute.value_or(forward);
    return selective_recompute.value_or(forward * 27 / 1000);
  }
};

/// Divides uniform costs over a schedule's stages: a share is split into chunks (and slices), the
/// first `share mod parts` of which are one nanosecond longer, so that the parts add up.
CostModel spread(const UniformCost& cost, const Schedule& schedule);

/// The duration of every instruction of a Program, in its order. Throws Error if the model does not
/// cover the Program's stages.
std::vector<Nanos> price(const Program& program, const CostModel& costs);

/// The time that passes before each instruction since the end of the one before it in its lane: the
/// op gap between two ops of a rank, none after a wait for a message, whose latency includes it,
/// and none within an overlapped pair that has a time of its own. Empty if ops have no gaps.
std::vector<Nanos> price_gaps(const Program& program, const CostModel& costs);

/// Returns the part of each message's and copy's duration that scales with its bytes, and so with
/// the length of its micro-batch. For a copy that is all of it.
std::vector<Nanos> price_bytes(const Program& program, const CostModel& costs);

}  // namespace bubblescope::inline sim
