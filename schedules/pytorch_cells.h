// The idle cells of PyTorch's orders. They take no time, but each costs its rank a turn in
// PyTorch's lowering and so affects where receives are posted.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::schedules {

inline constexpr Op kIdleCell{0, 0, 0, OpKind::kIdle, Pairing::kAlone};

/// The idle cells of a rank: `lead` at the front, `gap` after the first `warmup` ops, and one
/// before each op from the `cooldown`th on, if that is given.
struct IdleCells {
  std::int64_t lead = 0;
  std::int64_t warmup = 0;
  std::int64_t gap = 0;
  std::optional<std::int64_t> cooldown = std::nullopt;
};

/// Returns the cells of one rank: its ops with the idle cells.
RankOrder with_idle_cells(const RankOrder& ops, const IdleCells& idle);

/// Delays every forward, in steps that all ranks take together, until the forward of the previous
/// stage has run in an earlier step; idle cells take its place. `cells` are those of all ranks; the
/// stages form one pipeline.
std::vector<RankOrder> with_forwards_in_step(const std::vector<RankOrder>& cells,
                                             std::int32_t stages, std::int32_t microbatches);

}  // namespace bubblescope::schedules
