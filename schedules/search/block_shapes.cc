// Which shapes of building blocks repeat: split backwards by enumeration, fused ones, which leave
// no slot free, by shortest paths.
#include <algorithm>

#include "schedules/search/building_blocks.h"

namespace bubblescope {

namespace {

constexpr std::int32_t kPeriod = 6;
constexpr std::int32_t kFarChoices = 7;  ///< ranks at which the way of moving may change

/// Slots per rank away from rank 0 (F0 and I1) and back to it (F1 and I0).
struct Pace {
  std::int32_t away;
  std::int32_t back;
};
constexpr std::array<Pace, 9> kPaces{
    {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}, {4, 2}, {3, 3}, {2, 4}, {5, 1}}};

void add_turns(std::vector<BlockShape>& found, BlockShape shape) {
  const BuildingBlock closest = v_block(shape);
  for (std::int32_t turns = 0; turns < kPeriod * kPeriod * kPeriod; ++turns) {
    const std::array<std::int32_t, 3> rests{turns % kPeriod, turns / kPeriod % kPeriod,
                                            turns / (kPeriod * kPeriod)};
    if (!repeats(closest, false, rests)) continue;
    shape.turn = {1 + rests[0], 1 + rests[1], 1 + rests[2]};
    found.push_back(shape);
  }
}

BlockShape paced(std::int32_t ranks, const Pace& near, const Pace& far, std::int32_t far_from) {
  BlockShape shape;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    const Pace& pace = rank < far_from ? near : far;
    shape.hops.push_back({pace.away, pace.back, pace.away, pace.back});
  }
  return shape;
}

/// Slots after F0, modulo the period, of F1, B1 and B0, when a B takes two: all six are taken.
struct FusedRow {
  std::int32_t forward;
  std::array<std::int32_t, 2> gradient;  ///< of chunk 0 and 1
};
constexpr std::array<FusedRow, 6> kFusedRows{
    {{1, {4, 2}}, {1, {2, 4}}, {3, {4, 1}}, {3, {1, 4}}, {5, {3, 1}}, {5, {1, 3}}}};

/// The least number that is `residue` modulo the period and at least `least`.
std::int32_t least_congruent(std::int32_t residue, std::int32_t least) {
  return least + ((residue - least) % kPeriod + kPeriod) % kPeriod;
}

/// The shortest hops from one rank's row to the next one's, when F0 moves by `away`.
BlockShape::Hops shortest_hops(const FusedRow& from, const FusedRow& to, std::int32_t away) {
  return {away, least_congruent(from.forward - to.forward - away, 1),
          least_congruent(to.gradient[1] + away - from.gradient[1], 2),
          least_congruent(from.gradient[0] - to.gradient[0] - away, 2)};
}

/// The best way known to reach a rank with some row.
struct Reached {
  std::int32_t length = 1 << 28;
  std::size_t from = 0;
  BlockShape::Hops hops{};
};
using ReachedRows = std::array<Reached, kFusedRows.size()>;

/// `inner` weighs chunk 1's lifespan, which is longest on the last rank, against chunk 0's.
ReachedRows reach_next(const ReachedRows& before, std::int32_t inner) {
  ReachedRows after;
  for (std::size_t from = 0; from < kFusedRows.size(); ++from)
    for (std::size_t to = 0; to < kFusedRows.size(); ++to)
      for (std::int32_t away = 1; away <= kPeriod; ++away) {
        const BlockShape::Hops hops = shortest_hops(kFusedRows[from], kFusedRows[to], away);
        const std::int32_t length =
            before[from].length + hops[0] + hops[3] + (1 + inner) * (hops[1] + hops[2]);
        if (length < after[to].length) after[to] = {length, from, hops};
      }
  return after;
}

BlockShape shortest_fused_shape(std::int32_t ranks, std::size_t first, std::size_t last,
                                std::int32_t inner) {
  std::vector<ReachedRows> best(1);
  best[0][first].length = 0;
  while (best.size() < static_cast<std::size_t>(ranks))
    best.push_back(reach_next(best.back(), inner));
  BlockShape shape;
  shape.hops.resize(best.size());
  std::size_t row = last;
  for (std::size_t rank = best.size() - 1; rank > 0; --rank) {
    shape.hops[rank] = best[rank][row].hops;
    row = best[rank][row].from;
  }
  const FusedRow& outer = kFusedRows[first];
  const FusedRow& turning = kFusedRows[last];
  shape.turn = {turning.forward, least_congruent(outer.gradient[1] - outer.forward, 1),
                least_congruent(turning.gradient[0] - turning.gradient[1], 2)};
  return shape;
}

}  // namespace

std::vector<BlockShape> split_block_shapes(std::int32_t ranks) {
  std::vector<BlockShape> found;
  const std::int32_t stride = 1 + (ranks - 2) / kFarChoices;
  for (const Pace& near : kPaces) {
    add_turns(found, paced(ranks, near, near, ranks));
    for (const Pace& far : kPaces)
      for (std::int32_t far_from = 1; far_from < ranks; far_from += stride)
        if (&near != &far) add_turns(found, paced(ranks, near, far, far_from));
  }
  return found;
}

std::vector<BlockShape> fused_block_shapes(std::int32_t ranks) {
  std::vector<BlockShape> found;
  for (std::size_t first = 0; first < kFusedRows.size(); ++first)
    for (std::size_t last = 0; last < kFusedRows.size(); ++last)
      for (const std::int32_t inner : {0, 1})
        if (ranks > 1 || first == last)
          found.push_back(shortest_fused_shape(ranks, first, last, inner));
  return found;
}

}  // namespace bubblescope
