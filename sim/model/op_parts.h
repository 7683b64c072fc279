// Parts of ops: an op as a small graph of parts, each in a lane of its rank.
//
//   F of a layer with experts    attn ──► dispatch ──► mlp ──► combine
//   its lanes                    compute  expert       compute expert
//
// A lane runs one part at a time. The parts of an op repeat once per layer; an op whose layers are
// folded into one has the times of all of them. Two overlapped ops interleave their parts by an
// order, which is data: see pair_order.h.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// A kind of lane that every rank has.
struct PartLaneKind {
  std::string_view name;
  std::string_view summary;
};

/// All kinds of lanes. A new kind is one more entry here.
inline constexpr std::array<PartLaneKind, 7> kPartLanes{{
    {"compute", "GEMMs, attention and all else that computes"},
    {"tensor", "collectives of the tensor-parallel group"},
    {"expert", "dispatch and combine: the all-to-all of the expert-parallel group"},
    {"copy", "copies from and to another memory"},
    {"context", "exchanges of keys and values in the context-parallel group"},
    {"data", "weights gathered and gradients reduced in the data-parallel group"},
    {"message", "messages between pipeline ranks that their sender waits for"},
}};

/// Index into kPartLanes.
using PartLane = std::uint8_t;
inline constexpr PartLane kComputeLane = 0;

/// Returns the lane of this name, or nullopt.
std::optional<PartLane> find_part_lane(std::string_view name);

/// The maximum number of parts of an op, counted over its layers.
inline constexpr std::int32_t kMaxPartsOfOp = 4096;
/// The longest time of all parts of an op together: about 11 days.
inline constexpr Nanos kMaxPartsTime = 1'000'000'000'000'000;

/// One part of an op.
struct OpPart {
  std::string name;
  PartLane lane = kComputeLane;
  std::vector<Nanos> times;  ///< [layer]; one entry: of every layer
  /// Indices of the parts of the same layer that it waits for. All come before it in the list.
  std::vector<std::size_t> after = {};
  /// The parts of the layer before that it waits for.
  std::vector<std::size_t> after_previous_layer = {};

  Nanos time(std::int32_t layer) const {
    return times[times.size() == 1 ? 0 : static_cast<std::size_t>(layer)];
  }
};

/// The parts of an op; empty: the op has none.
struct OpParts {
  std::int32_t layers = 1;
  std::vector<OpPart> parts = {};
  /// The time in which the host launches it: a pair takes at least that of both ops.
  Nanos host = 0;

  bool empty() const { return parts.empty(); }
};

/// The indices of the parts that no other part of their layer waits for.
std::vector<std::size_t> find_last_parts(const OpParts& op);

/// Returns the same parts, of which each one waits for the one before it.
OpParts make_series(OpParts op);

/// The share of one slice in all parts. Each is rounded where it ends, so that parts in series take
/// the slice's share of the whole.
OpParts divide_parts(OpParts op, std::int32_t slices, std::int32_t slice);

/// How many times longer a part takes while another lane of its rank is busy: [lane][other lane],
/// 1 where it is not slowed. Where several lanes are busy, their factors multiply.
struct LaneContention {
  static constexpr double kMaxSlowdown = 10;

  LaneContention() {
    for (auto& of_lane : slowdown) of_lane.fill(1);
  }

  std::array<std::array<double, kPartLanes.size()>, kPartLanes.size()> slowdown;
};

}  // namespace bubblescope::inline sim
