// The runs of ops with parts, and of the overlapped pairs of a schedule.
//
// Every different op and pair is timed once, before the step. Their times are those of the ops: the
// engine knows nothing of parts.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/model/part_run.h"

namespace bubblescope::inline sim {

/// The parts of a stage's ops.
struct StageParts {
  std::array<OpParts, kComputeKinds> of_kind = {};
  std::optional<PairOrder> pair_order = {};  ///< of pairs whose forward is on this stage

  const OpParts& of(OpKind kind) const { return of_kind[static_cast<std::size_t>(kind)]; }
  bool any() const;
};

/// An op, or the two ops of an overlapped pair, of any micro-batch.
struct RunKey {
  std::int32_t stage = 0;
  std::int32_t second_stage = -1;  ///< of a pair's second op; negative: there is none
  std::int16_t slice = 0;
  std::int16_t second_slice = 0;
  OpKind kind = OpKind::kForward;
  OpKind second_kind = OpKind::kForward;

  auto operator<=>(const RunKey&) const = default;
};

RunKey key_of(const Op& op);
RunKey key_of(const Op& first, const Op& second);

struct PartCosts {
  std::vector<PartRun> runs = {};
  std::map<RunKey, std::size_t> run_of = {};  ///< indices into `runs`
  bool has_pairs = false;

  bool empty() const { return runs.empty(); }
  const PartRun* find(const RunKey& key) const;
};

/// The parts as a cost table gives them: one entry per stage, or one pipeline's stages.
struct PartTable {
  std::vector<StageParts> stages = {};  ///< empty: no op has parts
  LaneContention contention = {};
  bool per_slice = false;  ///< parts are those of one slice, instead of the whole sequence
  /// Whether ops outside of pairs run their parts one after the other, as in eager execution.
  bool series_alone = false;
  std::string order_field = "overlapped_pair";  ///< gives the order of pairs, for messages

  const StageParts& of_stage(std::int32_t stage) const {
    return stages[static_cast<std::size_t>(stage) % stages.size()];
  }
};

/// Runs all ops with parts and all pairs that interleave. Throws Error where an order does not fit
/// the parts of a pair.
PartCosts run_all_parts(const PartTable& table, const Schedule& schedule);

/// An instruction, or the two of an overlapped pair, and the run of its parts.
struct PlacedRun {
  InstructionId first = 0;
  InstructionId last = 0;  ///< `first`, unless it is a pair
  std::size_t run = 0;     ///< index into PartCosts::runs
};

/// All ops and pairs of a Program that have parts, in its order. Both halves of a pair that does
/// not interleave count as ops.
std::vector<PlacedRun> place_runs(const Program& program, const PartCosts& costs);

/// Gives pairs that interleave their time. Their first op ends with the last of its parts; the
/// second has the rest.
void price_pairs(const Program& program, const PartCosts& costs, std::vector<Nanos>& durations);

}  // namespace bubblescope::inline sim
