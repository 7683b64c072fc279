// Extends a short step by copies of its period (steady_state.h): what a report of the long step
// says about single instructions.
//
//   short    warm-up     period                  drain
//   long     warm-up     period  1  2  3  4      drain       4 copies
//
// An instruction of the long step is one of the short step and the number of periods by which it is
// later: 0 before the cut, 1 to `copies` in a copy, `copies` after the cut.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/analysis/blocker.h"
#include "sim/analysis/steady_state.h"

namespace bubblescope::inline sim {

/// A short step and what makes it long, by reference.
struct ExtendedStep {
  const Program& program;
  const Timeline& timeline;
  const Blockers& blockers;
  const SteadyState& state;
  std::int64_t copies = 0;
};

struct ExtendedId {
  InstructionId id = 0;
  std::int64_t copy = 0;
};

/// The critical path of the long step. Empty where several instructions of the highest rank end
/// last: which of them find_critical_path() would choose depends on their order in the long
/// Program.
std::optional<std::vector<ExtendedId>> extend_critical_path(const ExtendedStep& step);

/// Whether every instruction of the long step has the slack of the one that it is a copy of.
bool keeps_slack(const ExtendedStep& step, const std::vector<Nanos>& slack);

/// A part of the long step: the short one, with those copies that are on the given path or run on
/// the given ranks' compute lanes. Without dependencies, and in the order of their lanes.
struct StepExcerpt {
  Program program;
  Timeline timeline;
  std::vector<InstructionId> place;   ///< per instruction of the short step: its id here
  std::vector<InstructionId> source;  ///< per instruction here: its id in the short step
  std::vector<InstructionId> path;    ///< the given path, by ids here
};

StepExcerpt make_excerpt(const ExtendedStep& step, const std::vector<ExtendedId>& path,
                         std::span<const std::int32_t> ranks);

}  // namespace bubblescope::inline sim
