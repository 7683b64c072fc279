// Finds the shapes of building blocks that repeat: by enumeration for split backwards, and as
// cycles of two and three ranks for fused ones, which leave no slot free.
#include <span>

#include "schedules/search/building_blocks.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kPeriod = 6;
constexpr std::int32_t kFarChoices = 7;  ///< ranks at which the distance may change

/// Slots per rank away from rank 0 (F0 and I1) and back to it (F1 and I0).
struct Stride {
  std::int32_t away;
  std::int32_t back;
};
constexpr std::array<Stride, 9> kStrides{
    {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {4, 2}, {3, 3}, {2, 4}, {5, 1}}};

void add_turns(std::vector<BlockShape>& found, BlockShape shape) {
  const BuildingBlock closest = make_v_block(shape);
  for (std::int32_t turns = 0; turns < kPeriod * kPeriod * kPeriod; ++turns) {
    const std::array<std::int32_t, 3> rests{turns % kPeriod, turns / kPeriod % kPeriod,
                                            turns / (kPeriod * kPeriod)};
    if (!repeats(closest, false, rests)) continue;
    shape.turn = {1 + rests[0], 1 + rests[1], 1 + rests[2]};
    found.push_back(shape);
  }
}

BlockShape make_shape(std::int32_t ranks, const Stride& near, const Stride& far,
                      std::int32_t far_from) {
  BlockShape shape;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const Stride& rank_stride = rank < far_from ? near : far;
    shape.hops.push_back({rank_stride.away, rank_stride.back, rank_stride.away, rank_stride.back});
  }
  return shape;
}

/// The slots of F1, B1 and B0 after F0, modulo the period, if a B takes two slots: all six are
/// used.
struct FusedRow {
  std::int32_t forward;
  std::array<std::int32_t, 2> gradient;  ///< of chunk 0 and 1
};
constexpr std::array<FusedRow, 6> kFusedRows{
    {{1, {4, 2}}, {1, {2, 4}}, {3, {4, 1}}, {3, {1, 4}}, {5, {3, 1}}, {5, {1, 3}}}};

/// Returns the smallest number that is `residue` modulo the period and at least `minimum`.
std::int32_t min_congruent(std::int32_t residue, std::int32_t minimum) {
  return minimum + ((residue - minimum) % kPeriod + kPeriod) % kPeriod;
}

/// The shortest hops from one rank's row to the next one's, if F0 moves by `away`.
BlockShape::Hops hops_between(const FusedRow& from, const FusedRow& to, std::int32_t away) {
  return {away, min_congruent(from.forward - to.forward - away, 1),
          min_congruent(to.gradient[1] + away - from.gradient[1], 2),
          min_congruent(from.gradient[0] - to.gradient[0] - away, 2)};
}

/// Returns the shortest hops over all values of `away`. `inner` favors chunk 1's lifespan, which is
/// longest on the last rank, over chunk 0's.
BlockShape::Hops shortest_hops(const FusedRow& from, const FusedRow& to, bool inner) {
  BlockShape::Hops best{};
  std::int32_t minimum = 1 << 28;
  for (std::int32_t away = 1; away <= kPeriod; ++away) {
    const BlockShape::Hops hops = hops_between(from, to, away);
    const std::int32_t length = hops[0] + hops[3] + (inner ? 2 : 1) * (hops[1] + hops[2]);
    if (length >= minimum) continue;
    minimum = length;
    best = hops;
  }
  return best;
}

/// Ranks 0, 1, 2, ... use the rows of the cycle in turn.
BlockShape fused_shape(std::int32_t ranks, std::span<const FusedRow> cycle, bool inner) {
  const auto row = [&](std::size_t rank) -> const FusedRow& { return cycle[rank % cycle.size()]; };
  BlockShape shape;
  shape.hops.resize(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 1; rank < shape.hops.size(); ++rank)
    shape.hops[rank] = shortest_hops(row(rank - 1), row(rank), inner);
  const FusedRow& outer = row(0);
  const FusedRow& turning = row(shape.hops.size() - 1);
  shape.turn = {turning.forward, min_congruent(outer.gradient[1] - outer.forward, 1),
                min_congruent(turning.gradient[0] - turning.gradient[1], 2)};
  return shape;
}

}  // namespace

std::vector<BlockShape> list_published_block_shapes(std::int32_t ranks) {
  BlockShape v_min = make_shape(ranks, {1, 1}, {1, 1}, ranks);
  v_min.turn = {1, ranks % 3 == 0 ? 3 : 1, 1};
  BlockShape v_half = make_shape(ranks, {2, 1}, {2, 1}, ranks);
  v_half.turn = {1, ranks % 2 == 0 ? 4 : 1, 2};
  return {v_half, v_min};
}

std::vector<BlockShape> list_split_block_shapes(std::int32_t ranks) {
  std::vector<BlockShape> found;
  const std::int32_t stride = 1 + (ranks - 2) / kFarChoices;
  for (const Stride& near : kStrides) {
    add_turns(found, make_shape(ranks, near, near, ranks));
    for (const Stride& far : kStrides)
      for (std::int32_t far_from = 1; far_from < ranks; far_from += stride)
        if (&near != &far) add_turns(found, make_shape(ranks, near, far, far_from));
  }
  return found;
}

std::vector<BlockShape> list_fused_block_shapes(std::int32_t ranks) {
  std::vector<BlockShape> found;
  for (const FusedRow& first : kFusedRows)
    for (const FusedRow& second : kFusedRows)
      for (const bool inner : {false, true}) {
        found.push_back(fused_shape(ranks, std::array{first, second}, inner));
        for (const FusedRow& third : kFusedRows)
          found.push_back(fused_shape(ranks, std::array{first, second, third}, inner));
      }
  return found;
}

}  // namespace bubblescope::schedules
